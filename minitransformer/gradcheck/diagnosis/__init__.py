"""What is wrong with a gradient, from the two gradients and from experiments with the pair.

Each common mistake leaves a mark: a wrong mean a constant factor, a forgotten term a difference of
one shape in every row, a forgotten transpose the right numbers in the wrong places. ``diagnose``
looks for the marks in turn and names the first that explains *every* entry. A cause that can be
disproved is put to the test, by ``experiments``: the pair is run again with another dy or other
inputs. What has no mark is located, by ``where``.
"""

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import same, with_bounded_trials
from minitransformer.gradcheck.diagnosis.factors import constant_factor
from minitransformer.gradcheck.diagnosis.inside import inner_derivative, within_itself
from minitransformer.gradcheck.diagnosis.matrices import (
    product_transposed,
    right_for_another,
    second_use,
    symmetric,
    weight_not_transposed,
)
from minitransformer.gradcheck.diagnosis.parameters import wrong_derivative_of_parameter, wrong_half
from minitransformer.gradcheck.diagnosis.paths import (
    missing_residual,
    only_dy,
    past_another,
    straight_path,
    through_a_weight,
    through_another,
)
from minitransformer.gradcheck.diagnosis.places import (
    another_gradient,
    chosen_entry,
    leak,
    other_zeros,
    rearranged,
    reversed_or_moved,
    transposed,
)
from minitransformer.gradcheck.diagnosis.pointwise import only_the_diagonal, wrong_derivative
from minitransformer.gradcheck.diagnosis.scales import factor_by_axis
from minitransformer.gradcheck.diagnosis.shapes import wrong_shape
from minitransformer.gradcheck.diagnosis.steps import overwritten, steps
from minitransformer.gradcheck.diagnosis.terms import (
    gain_missing,
    gain_outside,
    missing_term,
    sum_of_dy,
    sum_over_wrong_axis,
)
from minitransformer.gradcheck.diagnosis.upstream import not_linear, only_some_of_dy
from minitransformer.gradcheck.diagnosis.where import counted, repeated_ids, where

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
        return next(filter(None, (_said(mark, evidence) for mark in MARKS)), "its values are wrong")


def _said(mark, evidence):
    """What a mark says; nothing where it fails, because what is wrong is wrong without a cause."""
    try:
        return mark(evidence)
    except TOLERATED:
        return ""


def _not_finite(evidence):
    """A logarithm of 0, a division by it."""
    wrong = ~np.isfinite(evidence.analytic)
    return f"{counted(wrong, evidence.slopes)} are NaN or infinite" if wrong.any() else ""


def _imprecise(evidence):
    """Something in float32, or a constant such as 0.5 √(2 π) with few digits."""
    if not same(evidence.analytic, evidence.numeric, evidence.noise):
        return ""
    size = np.abs(evidence.numeric).max()
    error = np.abs(evidence.analytic - evidence.numeric).max() / size
    return (
        f"it agrees to {error:.0e} only: is something rounded to float32 on the way, or a constant "
        "not exact?"
    )


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
    _imprecise,
    _zeros,
    not_linear,
    constant_factor,
    another_gradient,
    transposed,
    leak,
    chosen_entry,
    missing_residual,
    other_zeros,
    gain_outside,
    repeated_ids,
    factor_by_axis,
    gain_missing,
    wrong_derivative,
    wrong_half,
    sum_over_wrong_axis,
    missing_term,
    weight_not_transposed,
    only_dy,
    only_the_diagonal,
    reversed_or_moved,
    rearranged,
    wrong_derivative_of_parameter,
    sum_of_dy,
    only_some_of_dy,
    product_transposed,
    second_use,
    symmetric,
    straight_path,
    past_another,
    through_a_weight,
    steps,
    through_another,
    overwritten,
    right_for_another,
    within_itself,
    inner_derivative,
    where,
]
