"""What is wrong with a gradient, from the two gradients and from experiments with the pair.

Two kinds of experiments tell. A slip *inside* a backward makes it the right backward of another
forward: of one that holds ``h @ u`` fixed, say, where what is carried from step to step is
forgotten. So forward is run on arrays that tell of every operation made on them (``watched``); at
one operation after another the slopes are changed as a slip would have them (``slips``), until they
are those that backward returned (``operations``). What is done to a gradient *as a whole* leaves a
mark on it: a mean for a sum is a constant factor, an axis too many a shape, a forgotten transpose
the right numbers in the wrong places. ``diagnose`` looks for each in turn and says the first cause
that explains *every* entry, there and on other inputs with another dy; where there is none,
``where`` says which entries are wrong.
"""

import re

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import redrawn, with_bounded_trials
from minitransformer.gradcheck.diagnosis.factors import constant_factor
from minitransformer.gradcheck.diagnosis.matrices import right_for_another
from minitransformer.gradcheck.diagnosis.operations import at_an_operation
from minitransformer.gradcheck.diagnosis.overwritten import overwritten
from minitransformer.gradcheck.diagnosis.places import (
    another_gradient,
    chosen_entry,
    leak,
    other_zeros,
    rearranged,
    reversed_or_moved,
    transposed,
)
from minitransformer.gradcheck.diagnosis.pointwise import (
    another_derivative,
    only_the_diagonal,
    wrong_derivative,
)
from minitransformer.gradcheck.diagnosis.rounded import imprecise
from minitransformer.gradcheck.diagnosis.scales import factor_by_axis
from minitransformer.gradcheck.diagnosis.shapes import wrong_shape
from minitransformer.gradcheck.diagnosis.terms import (
    gain_outside,
    missing_residual,
    missing_term,
    sum_over_wrong_axis,
)
from minitransformer.gradcheck.diagnosis.upstream import not_linear, only_some_of_dy
from minitransformer.gradcheck.diagnosis.where import counted, where

REPLACED = "backward replaces what was in the gradient; it must add to it in place, with +="
NONE_RETURNED = "backward returned None for it, but the output depends on it"
TOLERATED = Exception  # of marks, to which inputs may be strange; nothing while they are tested
ROUNDING = 1e-12  # of the right gradient: what is left of a sum whose terms cancel


def diagnose(evidence):
    """The likeliest cause for a gradient to be wrong, in words.

    Args:
        evidence: Evidence.
    """
    evidence = with_bounded_trials(evidence)
    with np.errstate(all="ignore"):
        causes = ((mark, _said(mark, evidence)) for mark in MARKS)
        held = (cause for mark, cause in causes if cause and _holds(mark, cause, evidence))
        return next(held, "its values are wrong")


def _said(mark, evidence):
    """What a mark says; nothing where it fails, because what is wrong is wrong without a cause."""
    try:
        return mark(evidence)
    except TOLERATED:
        return ""


def _holds(mark, cause, evidence):
    """Whether it is the same, but for places, on other inputs and with another dy."""
    if mark in SURE:
        return True
    found = [_said(mark, with_bounded_trials(other)) for other in redrawn(evidence, ids=True)]
    return all(_without_places(other) == _without_places(cause) for other in found)


def _without_places(cause):
    """Without thresholds and whole numbers; a factor such as 1.2094 is one only if it stays."""
    return re.sub(r"about -?[\d.e-]+|(?<![\d.])[-−]?\d+(?![\d.])|[,() ]+", " ", cause)


def _not_finite(evidence):
    """A logarithm of 0, a division by it."""
    wrong = ~np.isfinite(evidence.analytic)
    return f"{counted(wrong, evidence.slopes)} are NaN or infinite" if wrong.any() else ""


def _zeros(evidence):
    """A gradient forgotten, or made up."""
    sizes = [np.abs(g).max() for g in (evidence.analytic, evidence.numeric)]
    if sizes[0] <= ROUNDING * sizes[1]:
        return "it is zero everywhere" + (", but for rounding" if sizes[0] else "")
    if not evidence.numeric.any():
        return "it should be zero everywhere: the output does not depend on this input"
    return ""


MARKS = [  # each may rely on those before it
    wrong_shape,
    _not_finite,
    imprecise,
    _zeros,
    not_linear,
    constant_factor,
    another_gradient,
    transposed,
    leak,
    missing_residual,
    wrong_derivative,
    at_an_operation,
    another_derivative,
    chosen_entry,
    other_zeros,
    gain_outside,
    factor_by_axis,
    sum_over_wrong_axis,
    missing_term,
    only_the_diagonal,
    reversed_or_moved,
    rearranged,
    only_some_of_dy,
    overwritten,
    right_for_another,
    where,
]

# They speak of this gradient as it is, or have tried other inputs themselves.
SURE = {
    wrong_shape,
    _not_finite,
    imprecise,
    _zeros,
    not_linear,
    constant_factor,
    another_gradient,
    missing_residual,
    at_an_operation,
    where,
}
