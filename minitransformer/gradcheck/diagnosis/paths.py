"""Which way of the gradient is missing: past a sublayer, or through another input."""

from minitransformer.gradcheck.diagnosis.experiments import (
    others,
    right,
    same,
    trial,
)
from minitransformer.gradcheck.diagnosis.pointwise import is_elementwise


def missing_residual(evidence):
    """y = x + sublayer(x) sends dy straight to x, whatever the sublayer is."""
    if evidence.slopes or evidence.dy.shape != evidence.numeric.shape:
        return ""
    one = ", or a 1 is left out of the derivative" if is_elementwise(evidence) else ""
    if same(evidence.numeric - evidence.analytic, evidence.dy):
        return (
            "dy itself is missing: the output also depends on this input directly, as past a "
            "residual connection" + one
        )
    if same(evidence.analytic - evidence.numeric, evidence.dy):
        return "dy itself is added to it, as for a residual connection that is not there"
    return ""


def through_another(evidence):
    """Right as soon as another input is zero: what reaches this one through it is wrong."""
    zeros = {name: trial(evidence, **{name: 0 * x}) for name, x in others(evidence).items()}
    places = [
        f"where {name} is 0"
        for name, other in zeros.items()
        if evidence.inputs[name].any() and other is not None and right(other)
    ]
    if not places:
        return ""
    return f"it is right {' or '.join(places)}: the mistake lies in what is computed with it"
