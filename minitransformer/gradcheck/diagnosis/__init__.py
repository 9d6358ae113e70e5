"""What is wrong with a gradient, from the two gradients and from experiments with the pair.

Two kinds of experiments tell. A slip *inside* a backward makes it the right backward of another
forward: of one that holds ``h @ u`` fixed, say, where what is carried from step to step is
forgotten. So forward is run on arrays that tell of every operation made on them (``watched``); at
one operation after another the slopes are changed (``changes``) as a slip would have them
(``slips``), until they are those that backward returned (``operations``). What is done to a
gradient *as a whole* leaves a mark on it: a mean for a sum is a constant factor, an axis too many a
shape, a forgotten transpose the right numbers in the wrong places. ``diagnose`` looks for each in
turn and says the first cause that explains *every* entry, there and on other inputs with another
dy; where there is none, ``where`` says which entries are wrong.

A new cause is a Slip in ``slips``, or a mark: a function from an Evidence to what is said of it, or
nothing, in the module of its kind, and a line in MARKS, in whose order they are tried.
"""

import re

import numpy as np

from minitransformer.gradcheck.diagnosis import factors, places, pointwise, terms, upstream
from minitransformer.gradcheck.diagnosis.experiments import redrawn, with_bounded_trials
from minitransformer.gradcheck.diagnosis.operations import at_an_operation
from minitransformer.gradcheck.diagnosis.rounded import imprecise
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
    if MARKS[mark]:
        return True
    found = (_said(mark, with_bounded_trials(other)) for other in redrawn(evidence, ids=True))
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


MARKS = {  # each may rely on those before it; False where it has to hold on other inputs, too
    places.wrong_shape: True,
    _not_finite: True,
    imprecise: True,
    _zeros: True,
    upstream.not_linear: True,
    factors.constant_factor: True,
    places.another_gradient: True,
    places.transposed: False,
    places.leak: False,
    terms.missing_residual: True,
    pointwise.wrong_derivative: False,
    at_an_operation: True,
    places.chosen_entry: False,
    places.other_zeros: False,
    pointwise.part_of_a_derivative: False,
    terms.gain_outside: False,
    places.rearranged: False,
    upstream.of_another_dy: False,
    factors.factor_by_axis: False,
    terms.sum_over_wrong_axis: False,
    terms.missing_term: False,
    upstream.overwritten: False,
    upstream.right_for_another: False,
    where: True,
}
