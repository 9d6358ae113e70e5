"""The choices that make a training run."""

import math
from dataclasses import asdict, dataclass, field, fields, replace
from typing import ClassVar

from minitransformer.core.errors import require
from minitransformer.core.settings import Settings, at_most, not_negative, one_of, positive, share
from minitransformer.optim import OPTIMIZERS, optimizer_class
from minitransformer.optim.schedule import SCHEDULES, Plateau

CHOICES = {  # the fields that choose what has Settings of its own: from which names, and which
    "optimizer": (OPTIMIZERS, lambda name: optimizer_class(name).Settings),
    "schedule": (SCHEDULES, lambda name: SCHEDULES[name][-1]),
}
MOST_SHARDS = 1024  # threads; machines have fewer cores
PRECISIONS = "float32", "tf32", "bfloat16"


def settings_of(choice, name):
    """The Settings of the optimizer, or the schedule, of that name; ``choice`` says of which."""
    _, settings = CHOICES[choice]
    return settings(name)


def training_fields(**chosen):
    """What ``[training]`` may say of the ``chosen`` optimizer and schedule and of all else.

    Yields:
        each field and the class that has it, in order.
    """
    for f in fields(TrainingConfig)[:-1]:  # all but the options themselves
        yield f, TrainingConfig
        if f.name in chosen:
            settings = settings_of(f.name, chosen[f.name])
            yield from ((f, settings) for f in fields(settings))


@dataclass(frozen=True)
class TrainingConfig(Settings):
    """How a model is trained; the defaults suit a small model on Multi30k.

    Attributes:
        epochs: passes over the training data.
        batch_tokens: tokens in a batch, padding included; of pairs, both sides together. Of data
            without tokens, what their task counts.
        accumulate: batches whose gradients are added up for one step.
        optimizer: what makes the update of a gradient.
        schedule: of the learning rate.
        peak_learning_rate: reached at the end of the warm-up; ``"noam"`` has its own.
        warmup_steps: steps until then.
        label_smoothing: ε of the loss.
        consistency: weight of the R-Drop loss; 0 turns it, and the second pass, off.
        clip_norm: largest norm of the gradient; 0 turns clipping off.
        subword_dropout: probability of not merging two subwords (BPE-dropout).
        patience: epochs without a better validation score after which to stop; 0 is never.
        average: epochs, at most, whose parameters to average at the end, if that scores better.
        log_every: steps between two log entries.
        save_every: steps between two checkpoints; there is one at an epoch's end too.
        shards: parts of a batch that are worked on side by side, by threads and processes; 0 is
            one for each core of a CPU, or fewer where they would be tiny, and one for each GPU.
        ordered_sums: whether several processes add up gradients in the order of the shards, so that
            what a run gives does not depend on how many they are; otherwise in the order of MPI or
            NCCL, which sends less where a process has several shards.
        accelerate: whether to use the faster twins of the layers. On a CPU they round probabilities
            of dropout to 256ths, and the process keeps the memory that it frees.
        matmul_precision: of the twins' matrix products on a GPU: ``"float32"``, ``"tf32"`` or
            ``"bfloat16"``. Parameters and sums stay float32.
        seed: of weights, order of batches, and dropout.
        options: what the Settings of optimizer and schedule have, by name; what is not given is as
            by default. In a recipe they stand among the other fields.
        former: the options that runs of older releases note whatever they chose, and what they then
            say.

    Raises:
        InputError: a field makes no sense.
    """

    former: ClassVar[dict] = dict(momentum=0.0, nesterov=False, weight_decay=0.0, plateau_epochs=3)

    epochs: int = positive(30)
    batch_tokens: int = positive(4096)
    accumulate: int = positive(1)
    optimizer: str = one_of(OPTIMIZERS, "adam")
    schedule: str = one_of(SCHEDULES, "linear")
    peak_learning_rate: float = positive(1.2e-3)
    warmup_steps: int = positive(800)
    label_smoothing: float = share(0.1)
    consistency: float = not_negative(0.0)
    clip_norm: float = not_negative(1.0)
    subword_dropout: float = share(0.0)
    patience: int = not_negative(0)
    average: int = positive(5)
    log_every: int = positive(10)
    save_every: int = positive(500)
    shards: int = not_negative(0, at_most(MOST_SHARDS))
    ordered_sums: bool = True
    accelerate: bool = True
    matmul_precision: str = one_of(PRECISIONS, "float32")
    seed: int = not_negative(0)
    options: dict = field(default_factory=dict)

    def __post_init__(self):
        super().__post_init__()
        defaults = {}
        for choice in CHOICES:
            defaults |= asdict(type(self.settings(choice))())
        for name in self.options:
            require(name in defaults, self.useless(name) or f"there is no option {name}")
        options = {n: value for n, value in self.options.items() if value != defaults[n]}
        object.__setattr__(self, "options", options)

    def settings(self, choice):
        """The Settings of the chosen optimizer or schedule, with the options that they have."""
        settings = settings_of(choice, getattr(self, choice))
        names = settings.__dataclass_fields__.keys() & self.options.keys()
        return settings(**{name: self.options[name] for name in names})

    def chosen(self):
        """The names of the optimizer and the schedule, for :func:`training_fields`."""
        return {choice: getattr(self, choice) for choice in CHOICES}

    def as_dict(self):
        """All fields as they stand in a recipe, the options among them."""
        values = vars(self) | self.options
        fields = training_fields(**self.chosen())
        return {f.name: values.get(f.name, f.default) for f, _ in fields}

    def with_value(self, name, value):
        """One field or option replaced; a new choice keeps the options that it has, too.

        Raises:
            InputError: the value makes no sense.
        """
        if name not in vars(self):
            return replace(self, options=self.options | {name: value})
        changed = replace(self, options={}, **{name: value})
        known = changed.as_dict()
        return replace(changed, options={n: v for n, v in self.options.items() if n in known})

    def useless(self, name):
        """Why an option does nothing here, in words; empty where nothing has such an option."""
        for choice, (names, settings) in CHOICES.items():
            users = [n for n in names if name in settings(n).__dataclass_fields__]
            if users:
                return (
                    f"{name} does nothing with {choice}={getattr(self, choice)!r}; "
                    f"leave it out, or choose {' or '.join(users)}"
                )
        return ""

    def require_used(self, model):
        """Refuse options that do nothing together, and a schedule that the model cannot have.

        Args:
            model: the fields of the model, by name.

        Raises:
            InputError: which says what to choose.
        """
        require(
            self.schedule != "noam" or "d_model" in model,
            "schedule='noam' takes the peak from d_model, which this model does not have; "
            "choose inverse-sqrt, and a peak_learning_rate",
        )
        for choice in CHOICES:
            self.settings(choice).require_sense()

    def new_optimizer(self, flat):
        """The chosen Optimizer of the FlatParameters ``flat``."""
        return optimizer_class(self.optimizer)(flat, **asdict(self.settings("optimizer")))

    def new_plateau(self):
        """The Plateau of the schedule plateau; with another one, one that never drops the rate."""
        return Plateau(getattr(self.settings("schedule"), "plateau_epochs", math.inf))

    def learning_rate(self, step, total_steps, model, drops=0):
        """η of a step, counted from 1.

        Args:
            model: the configuration of the model, whose ``d_model`` is the D of noam.
            drops: of a Plateau.
        """
        rate, takes, _ = SCHEDULES[self.schedule]
        given = dict(peak=self.peak_learning_rate, warmup_steps=self.warmup_steps, drops=drops)
        given |= dict(total_steps=total_steps, d_model=getattr(model, "d_model", None))
        given |= vars(self.settings("schedule"))
        return rate(step, *(given[name] for name in takes))
