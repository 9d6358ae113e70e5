"""What a gradient check found: a line for each gradient, in words where it is wrong."""

from dataclasses import dataclass, field


class CheckError(Exception):
    """The gradients could not be checked; the message says why and what to do."""


@dataclass(frozen=True)
class TensorReport:
    """How one gradient compares with its numeric counterpart.

    Attributes:
        name: of the gradient, ``dx`` for input ``x``.
        error: largest difference over the largest entry of either gradient; infinite where shapes
            differ or an entry is not finite.
        right: whether the error is within the tolerance.
        index, analytic, numeric: the worst entry and its two values; None where shapes differ.
        diagnosis: what looks wrong, in words; empty when right.
        vacuous: whether both gradients are nowhere larger than central differences can resolve,
            which proves little.
    """

    name: str
    error: float
    right: bool
    index: tuple | None
    analytic: float | None
    numeric: float | None
    diagnosis: str = ""
    vacuous: bool = False

    def __str__(self):
        if self.right:
            note = "; zero everywhere, other inputs would prove more" if self.vacuous else ""
            return f"  right  {self.name}: relative error {self.error:.1e}{note}"
        lines = [f"  WRONG  {self.name}: {self.diagnosis}"]
        if self.index is not None:
            lines.append(
                f"         relative error {self.error:.1e}, worst at index {self.index}: "
                f"yours {self.analytic:.9g}, numeric {self.numeric:.9g}"
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class Report:
    """The outcome of one check; ``print(report)`` shows each gradient.

    Attributes:
        tensors: a TensorReport for each gradient.
        seconds: how long the check took.
        unchecked: names of the inputs that are no float64 arrays.
    """

    tensors: list[TensorReport]
    seconds: float
    unchecked: list[str] = field(default_factory=list)

    @property
    def right(self):
        """Whether every gradient is right."""
        return all(tensor.right for tensor in self.tensors)

    @property
    def max_error(self):
        """The largest relative error of all."""
        return max(tensor.error for tensor in self.tensors)

    def __str__(self):
        lines = [str(tensor) for tensor in self.tensors]
        wrong = [tensor.name for tensor in self.tensors if not tensor.right]
        if len(wrong) == 1 < len(self.tensors):
            lines.append(
                f"  Only {wrong[0]} is wrong: look at what it does not share with the others."
            )
        if self.unchecked:
            lines.append(f"  not checked, as no float64 array: {', '.join(self.unchecked)}")
        return "\n".join(lines)
