"""Learning rate schedules: a warm-up, then a decay (section 5.3).

    noam           η = D^−½ · min(t^−½, t · w^−1.5)                             (equation 3)
    inverse-sqrt   η = peak · min(t / w, √(w / t))
    linear         η = peak · min(t / w, (n − t) / (n − w))
    cosine         η = peak · min(t / w, (1 − cos π (n − t) / (n − w)) / 2)
    step           η = peak · min(t / w, 1), a tenth of it after n / 2, a hundredth after 3 n / 4
    plateau        η = peak · min(t / w, 1), a tenth of it each time that validations stand still

with t the step, counted from 1, w the steps of warm-up and n all steps. The first is the second
with a peak of 1 / √(D w); choosing the peak oneself leaves the warm-up free. The third ends at
zero, which suits short trainings, and so does the fourth (Loshchilov and Hutter 2017), which stays
longer near the peak. The last two are those of He et al. (2016) for CIFAR-10 (section 4.2) and
for ImageNet (section 3.4).

A schedule is a function here and a line in SCHEDULES, by the name that recipes give it.
"""

import math
from dataclasses import dataclass

from minitransformer.core.settings import Settings, positive
from minitransformer.core.twins import twinned


@twinned
def noam(step, d_model, warmup_steps):
    """The paper's learning rate at a step, counted from 1."""
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def inverse_sqrt(step, peak, warmup_steps):
    """Linear to ``peak`` at the end of the warm-up, then falling with the root of the step."""
    return peak * min(step / warmup_steps, math.sqrt(warmup_steps / step))


@twinned
def linear_decay(step, peak, warmup_steps, total_steps):
    """Linear to ``peak`` at the end of the warm-up, then linear to zero at ``total_steps``."""
    decay = (total_steps - step) / max(1, total_steps - warmup_steps)
    return peak * max(0.0, min(step / warmup_steps, decay))


def cosine_decay(step, peak, warmup_steps, total_steps):
    """Linear to ``peak`` at the end of the warm-up, then half a cosine to zero at the last step."""
    left = (total_steps - step) / max(1, total_steps - warmup_steps)
    decay = (1 - math.cos(math.pi * min(1.0, max(0.0, left)))) / 2
    return peak * min(step / warmup_steps, decay)


def step_decay(step, peak, warmup_steps, total_steps):
    """Linear to ``peak``; a tenth of it after half of all steps, a hundredth after 3/4."""
    drops = (2 * step > total_steps) + (4 * step > 3 * total_steps)
    return peak * min(step / warmup_steps, 1.0) / 10**drops


def plateau(step, peak, warmup_steps, drops):
    """Linear to ``peak``; a tenth of it after each of the ``drops``, which a Plateau counts."""
    return peak * min(step / warmup_steps, 1.0) * 0.1**drops


class Plateau:
    """Drops the learning rate when so many epochs have neither been the best nor had a drop.

    Attributes:
        drops: how often it has.
        epoch: after which epoch it did so last.
    """

    def __init__(self, epochs):
        self.epochs = epochs
        self.resume(drops=0, epoch=0)

    def look(self, epoch, best_epoch):
        """After the validation of ``epoch``, counted from 1, which may itself be the best."""
        if epoch - max(best_epoch, self.epoch) >= self.epochs:
            self.drops, self.epoch = self.drops + 1, epoch

    def state(self):
        """What :meth:`resume` goes on from, a dict."""
        return {"drops": self.drops, "epoch": self.epoch}

    def resume(self, drops, epoch):
        self.drops, self.epoch = drops, epoch


@dataclass(frozen=True)
class PlateauSettings(Settings):
    """What a recipe may say of the schedule plateau.

    Attributes:
        plateau_epochs: epochs without a better validation score after which the learning rate
            drops to a tenth.
    """

    plateau_epochs: int = positive(3)


# By the name that recipes give it: the function that gives the learning rate, what it takes beside
# the step (fields of its settings, too), and the Settings.
SCHEDULES = {
    "linear": (linear_decay, ("peak", "warmup_steps", "total_steps"), Settings),
    "cosine": (cosine_decay, ("peak", "warmup_steps", "total_steps"), Settings),
    "step": (step_decay, ("peak", "warmup_steps", "total_steps"), Settings),
    "inverse-sqrt": (inverse_sqrt, ("peak", "warmup_steps"), Settings),
    "noam": (noam, ("d_model", "warmup_steps"), Settings),
    "plateau": (plateau, ("peak", "warmup_steps", "drops"), PlateauSettings),
}
