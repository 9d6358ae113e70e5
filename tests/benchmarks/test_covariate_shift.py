"""Shifts of a layer's inputs: what is measured as one, and what is made on purpose."""

import covariate_shift as script
import numpy as np
import pytest
from tiny_workload import few_pictures

from minitransformer.cases.case import B, D
from minitransformer.gradcheck import check_pair


def test_a_shift_is_how_far_the_median_mean_moves_in_deviations_before():
    before = [(np.array([0.0, 1.0]), np.array([1.0, 2.0])), (np.array([3.0]), np.array([0.5]))]
    after = [(np.array([0.5, 1.0]), np.array([9.0, 9.0])), (np.array([2.0]), np.array([9.0]))]
    assert script.moved(before, after) == pytest.approx(0.5)  # of 0, 0.5 and 2


def test_noise_changes_channels_in_training_alone_and_its_gradient_is_right():
    norm, x = script.FarShiftedBatchNorm(D), np.random.default_rng(0).standard_normal((B * 4, D))

    def forward(x, seed):
        return norm.forward(x, np.random.default_rng(seed))

    def backward(dy, cache):
        return norm.backward(dy, cache)

    assert check_pair(forward, backward, (x, 3)).right
    y, _ = forward(x, 3)
    assert abs(y.mean(axis=0)).min() > 1e-3
    assert np.ptp(y.std(axis=0)) > 0.1
    in_use, _ = norm.forward(x)
    np.testing.assert_array_equal(in_use, norm.forward(x)[0])


def test_looking_at_inputs_notes_no_statistics_and_sees_a_shift():
    model = script.SmallNetwork(script.SmallNetworkConfig(28, 28, 1, 10, num_features=4))
    pictures = np.random.default_rng(1).standard_normal((20, 28, 28, 1)).astype(np.float32)
    kept = [buffer.data.copy() for _, buffer in model.named_buffers()]
    before = script.inputs_of(model, pictures, np.random.default_rng(0))
    for (_, buffer), data in zip(model.named_buffers(), kept, strict=True):
        np.testing.assert_array_equal(buffer.data, data)
    for layer in model.convolutions[:2]:
        layer.norm.beta.data += 1
    after = script.inputs_of(model, pictures, np.random.default_rng(0))
    assert script.moved(before, after) > 0.5


def test_a_training_that_explodes_is_told_and_not_fatal(monkeypatch):
    monkeypatch.setattr(script, "SIZE", 4)
    few_pictures(monkeypatch, script)
    corpus = script.shapes_corpus()
    few = corpus["train"][:40], corpus["validation"][:20], corpus["test"][:20]
    with np.errstate(all="ignore"):
        scores = script.trained("no norm", 1e30, 1, few, epochs=1)
    assert scores["loss"] is None
    row = dict(rate=1e30, seeds=[scores])
    table = script.table({"rows": [dict(row, norm=kind) for kind in script.KINDS]})
    assert table.count("exploded") == 2 * len(script.KINDS)
