"""Pairs that the checker was not written for: is it right about them, and about what is wrong?

``run_battery.py`` takes more seeds, and prints what is said of each wrong pair.
"""

import functools

import numpy as np
import pytest
from battery import PAIRS, RIGHT, WRONG
from battery.says import SAYS
from battery.verdicts import Verdict, fault, verdict
from made import KINDS, MadeWrong

from minitransformer.gradcheck import check_pair

pytestmark = pytest.mark.slow
found = functools.cache(verdict)


@functools.cache
def found_in_made(pair):
    """(kind of slip, TensorReport) of each gradient of a right pair, made wrong in each way."""
    found = []
    for first in range(len(KINDS)):
        forward, backward, inputs, names = pair.pair(np.random.default_rng((0, 1)))
        made = MadeWrong(backward, first)
        tensors = check_pair(forward, made, inputs, names=names).tensors
        found += zip(made.kinds.values(), tensors, strict=True)
    return [(kind, tensor) for kind, tensor in found if kind]


def judged(kind, tensor):
    return Verdict("wrong", ((tensor.name, tensor.diagnosis),)).judged(kind)


def test_no_two_pairs_are_the_same():
    assert len({str(pair) for pair in PAIRS}) == len(PAIRS)


def test_every_kind_of_slip_has_words_that_name_it():
    assert {pair.tag for pair in WRONG} | set(KINDS) == set(SAYS)


@pytest.mark.parametrize("pair", RIGHT, ids=str)
def test_no_right_pair_is_rejected(pair):
    assert not fault(pair, found(pair))


@pytest.mark.parametrize("pair", WRONG, ids=str)
def test_every_wrong_pair_is_rejected_and_its_right_gradients_are_not(pair):
    assert not fault(pair, found(pair))


@pytest.mark.parametrize("pair", WRONG, ids=str)
def test_no_wrong_cause_is_named(pair):
    assert found(pair).judged(pair.tag) != "wrongly named", str(found(pair))


@pytest.mark.parametrize("pair", RIGHT, ids=str)
def test_every_slip_made_in_a_right_pair_is_rejected_and_no_wrong_cause_named(pair):
    for kind, tensor in found_in_made(pair):
        assert tensor.verdict == "wrong", (kind, tensor)
        assert judged(kind, tensor) != "wrongly named", (kind, tensor)


def test_nine_of_ten_slips_made_are_named():
    each = [judged(kind, tensor) for pair in RIGHT for kind, tensor in found_in_made(pair)]
    assert each.count("named") > 0.9 * len(each)


def test_four_of_five_causes_are_named():
    silent = [str(pair) for pair in WRONG if found(pair).judged(pair.tag) == "silence"]
    assert len(silent) < len(WRONG) / 5, silent


@pytest.mark.parametrize(("tag", "cause", "judged"), [
    ("sign", "its sign is wrong", "named"),
    ("sign", "it is 2 times too large: 2 is the batch size", "wrongly named"),
    ("sign", "5 of its 5 entries are wrong", "silence"),
    ("factor", "it is 2 times too small", "named"),
    ("factor", "it is 2 times too small: 2 is the batch size", "wrongly named"),
    ("factor of the batch", "it is 2 times too small: 2 is the batch size", "named"),
    ("factor of a root", "it is 2 times too large: 2 is √4, the root of d", "wrongly named"),
    ("dy forgotten", "it is 1.52576 times too small", "silence"),
])  # fmt: skip
def test_what_is_said_is_judged(tag, cause, judged):
    assert Verdict("wrong", (("dx", cause),)).judged(tag) == judged
