"""Learning rate schedules: a warm-up, then a decay (section 5.3).

    noam           η = D^−½ · min(t^−½, t · w^−1.5)                             (equation 3)
    inverse-sqrt   η = peak · min(t / w, √(w / t))
    linear         η = peak · min(t / w, (n − t) / (n − w))

with t the step, counted from 1, w the steps of warm-up and n all steps. The first is the second
with a peak of 1 / √(D w); choosing the peak oneself leaves the warm-up free. The third ends at
zero, which suits short trainings.
"""

import math

from minitransformer.twins import twinned


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
