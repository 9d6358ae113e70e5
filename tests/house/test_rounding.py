"""The tolerance of a sum takes another order of it, and no term too few."""

import numpy as np
import pytest
from rounding import additions_of, assert_but_for_rounding, rounding

from minitransformer.layers.linear import Linear

both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])
every_length = pytest.mark.parametrize("n", [2, 30, 1000, 100_000])


def sums_of(n, dtype):
    """The terms of twenty sums, as rows of a matrix."""
    return np.random.default_rng(0).standard_normal((20, n)).astype(dtype)


@both_types
@every_length
def test_terms_added_one_by_one_are_those_added_by_halves_but_for_rounding(dtype, n):
    terms = sums_of(n, dtype)
    for ordered in (terms, terms[:, ::-1], np.random.default_rng(1).permuted(terms, axis=1)):
        one_by_one = np.cumsum(ordered, axis=1)[:, -1]
        assert_but_for_rounding(one_by_one, terms.sum(axis=1), n)


@both_types
@every_length
def test_a_term_too_few_is_no_rounding(dtype, n):
    terms = sums_of(n, dtype)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        assert_but_for_rounding(terms[:, 1:].sum(axis=1), terms.sum(axis=1), n)


def test_nor_is_another_type():
    with pytest.raises(AssertionError):
        assert_but_for_rounding(np.ones(3), np.ones(3, np.float32), 3)


def test_what_has_no_entries_is_equal():
    assert rounding(np.zeros((0, 3)), 5) == 0


def test_each_matrix_makes_sums_as_long_as_its_inputs_are_wide():
    assert additions_of(Linear(5, 3, np.random.default_rng(0))) == 5
