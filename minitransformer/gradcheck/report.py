"""What a gradient check found: a line for each gradient, in words where it is wrong."""

from dataclasses import dataclass, field

from minitransformer.core.errors import ExplainedError

RIGHT, WRONG, UNTOLD = "right", "wrong", "cannot be told"  # verdicts


class CheckError(ExplainedError):
    """The gradients could not be checked; the message says why and what to do."""


@dataclass(frozen=True)
class TensorReport:
    """How one gradient compares with its numeric counterpart.

    Attributes:
        name: of the gradient, ``dx`` for input ``x``.
        verdict: RIGHT, WRONG, or UNTOLD where rounding hides the gradient or a kink has two.
        error: where wrong, the difference at the worst entry over the larger of its two values,
            infinite where shapes differ or an entry is not finite; else the largest difference over
            the largest entry.
        index, analytic, numeric: the worst entry and its two values, or the worst direction and
            its two slopes; None where shapes differ or not the values are wrong, but how they came
            about.
        diagnosis: what looks wrong or is missing, in words; empty when right.
        vacuous: whether both gradients are zero everywhere, which proves little.
        slopes: whether slopes along directions were compared.
    """

    name: str
    verdict: str
    error: float
    index: tuple | None
    analytic: float | None
    numeric: float | None
    diagnosis: str = ""
    vacuous: bool = False
    slopes: bool = False

    @property
    def right(self):
        """Whether the gradient is known to be right."""
        return self.verdict == RIGHT

    def __str__(self):
        if self.right:
            note = "; zero everywhere, other inputs would prove more" if self.vacuous else ""
            return f"  right  {self.name}: relative error {self.error:.1e}{note}"
        if self.verdict == UNTOLD:
            return f"  cannot be told  {self.name}: {self.diagnosis}"
        lines = [f"  WRONG  {self.name}: {self.diagnosis}"]
        if self.index is not None:
            at = f"at index {self.index}: yours"
            if self.slopes:
                at = f"along direction {self.index[0]}: your slope"
            lines.append(
                f"         relative error {self.error:.1e}, worst {at} {self.analytic:.9g}, "
                f"numeric {self.numeric:.9g}"
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class Report:
    """The outcome of one check; ``print(report)`` shows each gradient.

    Attributes:
        tensors: a TensorReport for each gradient.
        seconds: how long the check took.
        unchecked: names of the inputs that are no float64 arrays.
        warnings: what the inputs would hide, and of what forward and backward warned.
    """

    tensors: list[TensorReport]
    seconds: float
    unchecked: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def from_dict(cls, values):
        """The Report that ``dataclasses.asdict`` made the dict of, even if it went through JSON."""
        tensors = [
            TensorReport(**{**tensor, "index": tensor["index"] and tuple(tensor["index"])})
            for tensor in values["tensors"]
        ]
        return cls(**{**values, "tensors": tensors})

    @property
    def verdict(self):
        """WRONG if anything is, RIGHT if all is, else UNTOLD."""
        verdicts = {tensor.verdict for tensor in self.tensors}
        if WRONG in verdicts:
            return WRONG
        return UNTOLD if UNTOLD in verdicts else RIGHT

    @property
    def right(self):
        """Whether everything is known to be right."""
        return self.verdict == RIGHT

    @property
    def max_error(self):
        """The largest relative error of all."""
        return max(tensor.error for tensor in self.tensors)

    def __bool__(self):
        return self.right  # so that ``assert check_pair(...)`` is a test

    def __str__(self):
        lines = [str(tensor) for tensor in self.tensors]
        wrong = [tensor.name for tensor in self.tensors if tensor.verdict == WRONG]
        if len(wrong) == 1 < len(self.tensors):
            lines.append(
                f"  Only {wrong[0]} is wrong: look at what it does not share with the others."
            )
        lines += [f"  warning: {warning}" for warning in self.warnings]
        if self.unchecked:
            lines.append(f"  not checked, as no float64 array: {', '.join(self.unchecked)}")
        return "\n".join(lines)
