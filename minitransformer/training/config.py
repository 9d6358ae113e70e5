"""The choices that make a training run."""

import math
from dataclasses import dataclass

from minitransformer.core.errors import InputError, require, require_one_of
from minitransformer.optim import OPTIMIZERS, optimizer_class, schedule

DECAYS = {  # from the step, the peak, the steps of warm-up and all steps to the learning rate
    "linear": schedule.linear_decay,
    "cosine": schedule.cosine_decay,
    "step": schedule.step_decay,
}
SCHEDULES = *DECAYS, "inverse-sqrt", "noam", "plateau"
# Fields that some optimizers have no use for.
OF_OPTIMIZERS = "momentum", "nesterov", "weight_decay"
MOST_SHARDS = 1024  # threads; machines have fewer cores
PRECISIONS = "float32", "tf32", "bfloat16"


@dataclass(frozen=True)
class TrainingConfig:
    """How a model is trained; the defaults suit a small model on Multi30k.

    Attributes:
        epochs: passes over the training data.
        batch_tokens: tokens in a batch, padding included; of pairs, both sides together. Of data
            without tokens, what their task counts.
        accumulate: batches whose gradients are added up for one step.
        optimizer: what makes the update of a gradient: ``"adam"``, ``"adamw"`` or ``"sgd"``.
        momentum: of sgd, the share of the velocity that stays.
        nesterov: whether sgd looks ahead.
        weight_decay: of adamw and sgd.
        schedule: of the learning rate: ``"linear"``, ``"cosine"``, ``"step"``, ``"inverse-sqrt"``,
            the paper's ``"noam"``, or ``"plateau"``, which looks at the validations.
        plateau_epochs: of the schedule plateau, epochs without a better validation score after
            which the learning rate drops to a tenth.
        peak_learning_rate: reached at the end of the warm-up; ``"noam"`` has its own.
        warmup_steps: steps until then.
        label_smoothing: ε of the loss.
        consistency: weight of the R-Drop loss; 0 turns it, and the second pass, off.
        clip_norm: largest norm of the gradient; 0 (or inf) turns clipping off.
        subword_dropout: probability of not merging two subwords (BPE-dropout).
        patience: epochs without a better validation score after which to stop; 0 is never.
        average: checkpoints, at most, to average at the end, if that scores better.
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

    Raises:
        ValueError: a field makes no sense.
    """

    epochs: int = 30
    batch_tokens: int = 4096
    accumulate: int = 1
    optimizer: str = "adam"
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    schedule: str = "linear"
    plateau_epochs: int = 3
    peak_learning_rate: float = 1.2e-3
    warmup_steps: int = 800
    label_smoothing: float = 0.1
    consistency: float = 0.0
    clip_norm: float = 1.0
    subword_dropout: float = 0.0
    patience: int = 0
    average: int = 5
    log_every: int = 10
    save_every: int = 500
    shards: int = 0
    ordered_sums: bool = True
    accelerate: bool = True
    matmul_precision: str = "float32"
    seed: int = 0

    def __post_init__(self):
        positive = ("epochs", "batch_tokens", "accumulate", "warmup_steps", "log_every")
        positive += ("save_every", "average", "plateau_epochs", "peak_learning_rate")
        for name in positive:
            require(getattr(self, name) > 0, f"{name}={getattr(self, name)!r} must be > 0")
        for name in ("consistency", "clip_norm", "patience", "shards", "seed", "weight_decay"):
            require(getattr(self, name) >= 0, f"{name}={getattr(self, name)!r} must be >= 0")
        few = self.shards <= MOST_SHARDS
        require(few, f"shards={self.shards!r} must be {MOST_SHARDS} at most")
        for name in ("peak_learning_rate", "consistency", "weight_decay"):
            value = getattr(self, name)
            require(not math.isinf(value), f"{name}={value!r} must be finite")
        for name in ("label_smoothing", "subword_dropout", "momentum"):
            value = getattr(self, name)
            require(0 <= value < 1, f"{name}={value!r} must lie in 0 <= {name} < 1")
        require_one_of(PRECISIONS, "matmul_precision", self.matmul_precision)
        require_one_of(SCHEDULES, "schedule", self.schedule)
        optimizer_class(self.optimizer)

    def require_used(self, model):
        """Refuse a field that the chosen optimizer or schedule does nothing with, or cannot have.

        Args:
            model: the fields of the model, by name.

        Raises:
            InputError: which names it.
        """
        if self.schedule == "noam" and "d_model" not in model:
            raise InputError(
                "schedule='noam' takes the peak from d_model, which this model does not have; "
                "choose inverse-sqrt, and a peak_learning_rate"
            )
        given = {n for n in OF_OPTIMIZERS if getattr(self, n) != getattr(TrainingConfig, n)}
        for name in sorted(given - set(optimizer_class(self.optimizer).settings)):
            users = [n for n in OPTIMIZERS if name in optimizer_class(n).settings]
            raise InputError(
                f"{name}={getattr(self, name)!r} does nothing with optimizer={self.optimizer!r}; "
                f"leave it out, or choose {' or '.join(users)}"
            )
        require(
            self.schedule == "plateau" or self.plateau_epochs == TrainingConfig.plateau_epochs,
            f"plateau_epochs={self.plateau_epochs!r} does nothing with schedule={self.schedule!r}; "
            "leave it out, or choose plateau",
        )
        require(
            self.momentum or not self.nesterov,
            "nesterov=True does nothing without momentum; give one, such as 0.9",
        )
        require(
            self.weight_decay or self.optimizer != "adamw",
            "optimizer='adamw' without a weight_decay is adam; give one, such as 0.01",
        )

    def new_optimizer(self, flat):
        """The chosen Optimizer of the FlatParameters ``flat``."""
        chosen = optimizer_class(self.optimizer)
        return chosen(flat, **{name: getattr(self, name) for name in chosen.settings})

    def learning_rate(self, step, total_steps, model, drops=0):
        """η of a step, counted from 1.

        Args:
            model: the configuration of the model, whose ``d_model`` is the D of noam.
            drops: of a Plateau.
        """
        if self.schedule == "noam":
            return schedule.noam(step, model.d_model, self.warmup_steps)
        if self.schedule == "plateau":
            return schedule.plateau(step, self.peak_learning_rate, self.warmup_steps, drops)
        if self.schedule == "inverse-sqrt":
            return schedule.inverse_sqrt(step, self.peak_learning_rate, self.warmup_steps)
        decay = DECAYS[self.schedule]
        return decay(step, self.peak_learning_rate, self.warmup_steps, total_steps)
