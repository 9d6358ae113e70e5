"""The battery of pairs that the checker has never seen: what is right and wrong, and what is said.

``run_battery.py`` is the same over more seeds, and prints what is said of each wrong pair.
"""

import numpy as np
import pytest
from battery import PAIRS, RIGHT, WRONG
from battery.says import SAYS
from battery.table import slipped
from battery.verdicts import fault, verdict


def test_there_are_enough_of_them_and_each_has_a_name_of_its_own():
    assert len(RIGHT) >= 60
    assert len(WRONG) >= 200
    assert len({str(pair) for pair in PAIRS}) == len(PAIRS)


def test_every_kind_of_slip_is_tried_and_none_is_unknown():
    assert {pair.tag for pair in WRONG} == set(SAYS)


@pytest.mark.parametrize("pair", RIGHT, ids=str)
def test_no_right_pair_is_rejected(pair):
    found = verdict(pair)
    assert found.word in ("right", pair.verdict), found.causes


@pytest.mark.parametrize("pair", WRONG, ids=str)
def test_every_wrong_pair_is_rejected_and_for_the_gradients_that_are_wrong(pair):
    assert not fault(pair, verdict(pair))


@pytest.mark.parametrize("pair", WRONG, ids=str)
def test_no_wrong_cause_is_named(pair):
    found = verdict(pair)
    assert found.cause(pair.tag) != "wrongly named", found.causes


def test_of_five_wrong_pairs_four_at_least_get_a_cause():
    silent = [str(pair) for pair in WRONG if verdict(pair).cause(pair.tag) == "silent"]
    assert len(silent) < len(WRONG) / 5, silent


def test_a_slip_is_a_change_of_what_stands_there_once():
    def double(x):
        return x + x

    assert slipped(np.atleast_1d, {}) is not np.atleast_1d
