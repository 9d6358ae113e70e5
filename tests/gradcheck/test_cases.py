"""What the package's cases promise: tolerances, inputs away from kinks, buffers as constants."""

from inspect import unwrap

import numpy as np
import pytest

from minitransformer import Buffer
from minitransformer.cases import CASES
from minitransformer.cases.case import D, F, away_from_kinks
from minitransformer.cases.pictures import PICTURES
from minitransformer.core.twins import Twin, standing_in
from minitransformer.gradcheck import check_module
from minitransformer.gradcheck.modules import moved_from_start
from minitransformer.layers.batch_norm import BatchNorm
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.linear import linear
from minitransformer.layers.relu import relu


class Centred(BatchNorm):
    """What a training has seen decides y: the second forward gives another one than the first."""

    def forward(self, x):
        self.mean.data = self.mean.data + 1
        return super().forward(x)


def test_what_a_forward_leaves_in_a_buffer_is_not_there_in_the_next():
    report = check_module(Centred(D), np.random.default_rng(0).standard_normal((2, 3, D)))
    assert report.right, report


def test_buffers_are_moved_away_from_values_that_would_hide_what_is_done_with_them():
    norm = BatchNorm(D)
    norm.steps = Buffer(np.zeros((), np.int64))
    moved_from_start(norm, np.random.default_rng(0))
    assert norm.mean.data.all()
    assert (norm.variance.data > 1).all()
    assert norm.steps.data == 0


def test_tolerances_are_those_promised():
    transformers = ("post-norm", "pre-norm", "restricted")
    language_models = ("language model", "masked language model", "tagger")
    of_pictures = ("vision transformer",)
    whole = tuple(f"model, {name}" for name in transformers + language_models + of_pictures)
    promised = {case.name: 1e-6 if case.name.startswith(whole) else 1e-7 for case in CASES}
    assert {case.name: case.tolerance for case in CASES} == promised


@pytest.mark.parametrize("seed", range(20))
def test_feed_forward_cases_stay_away_from_the_kink_of_the_relu(seed):
    rng = np.random.default_rng(seed)
    layer = away_from_kinks(moved_from_start(FeedForward(D, F, rng), rng))
    before_relu, _ = linear(rng.standard_normal((100, D)), layer.w_1.data, layer.b_1.data)
    assert np.abs(before_relu).min() > 0.01
    assert before_relu.min() < 0 < before_relu.max()  # some units on, some off


class ReLUs:
    """Notes what goes into each ReLU."""

    def __init__(self):
        self.inputs = []

    def twin_of(self, function):
        return Twin(self.relu) if function is relu else None

    def relu(self, x):
        self.inputs.append(x)
        return unwrap(relu)(x)


@pytest.mark.parametrize("case", PICTURES, ids=lambda case: case.name)
@pytest.mark.parametrize("seed", range(5))
def test_cases_of_pictures_stay_away_from_the_kinks_of_their_relus(case, seed):
    """By fifty steps of a central difference or more, which are of 1e-5 at first."""
    relus = ReLUs()
    forward, _, inputs, _ = case.build(np.random.default_rng(seed))
    with standing_in(relus):
        forward(*inputs)
    assert relus.inputs
    for x in relus.inputs:
        assert np.abs(x).min() > 5e-4
        assert 0.2 < (x > 0).mean() < 0.8  # some units on, some off
