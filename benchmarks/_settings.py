"""How the training steps of a benchmark are taken: the same on both sides."""

from dataclasses import dataclass

PRECISIONS = ("float32", "tf32")


@dataclass(frozen=True)
class Settings:
    """What the sides of a comparison have in common, and what makes one differ from another.

    Attributes:
        threads: to compute with, one or more.
        device: ``"cpu"`` or ``"cuda"``.
        precision: of matrix products, ``"float32"``, or ``"tf32"`` on a GPU.
        accelerate: whether our side uses its faster twins.
        compile: whether the PyTorch side compiles its model.
        seed: of dropout.
        smoothing: ε of the loss.
        clip_norm: largest norm of the gradient.
        peak_learning_rate, warmup_steps, total_steps: of the schedule, which falls linearly.

    Raises:
        ValueError: the precision does not exist on the device.
    """

    threads: int = 1
    device: str = "cpu"
    precision: str = "float32"
    accelerate: bool = True
    compile: bool = False
    seed: int = 0
    smoothing: float = 0.1
    clip_norm: float = 1.0
    peak_learning_rate: float = 1.2e-3
    warmup_steps: int = 800
    total_steps: int = 8000

    def __post_init__(self):
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision={self.precision!r}; choose {' or '.join(PRECISIONS)}")
        if self.precision == "tf32" and self.device == "cpu":
            raise ValueError("tf32 is a precision of GPUs; choose float32 on a CPU")
