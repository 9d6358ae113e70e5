"""Batch norm in a translator: where it norms by what, and that both norms see the same."""

import norms
import numpy as np
import pytest

from minitransformer import Transformer, TransformerConfig
from minitransformer.layers.batch_norm import BatchNorm
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.models.sublayers import NORMALISATIONS

PAIRS = [([4, 5, 6], [7, 8]), ([5, 4], [8, 7, 9]), ([6, 6, 4], [9])]


@pytest.fixture
def built(monkeypatch):
    """A tiny Transformer with batch norms, and one with layer norms."""
    config = TransformerConfig(12, 12, d_model=8, num_heads=2, d_ff=8, norm="pre")
    layer = Transformer(config)
    monkeypatch.setitem(NORMALISATIONS, "layer-norm", norms.TokenBatchNorm)
    return Transformer(config), layer


def test_batches_larger_than_all_there_is_are_refused_and_no_model_is_left_untrained():
    with pytest.raises(SystemExit, match="--sizes 101: choose 100 or less"):
        norms.main(["--sizes", "2", "101", "--sentences", "100"])


def of_kind(model, kind):
    return [module for _, module in model.named_modules() if isinstance(module, kind)]


def test_every_layer_norm_is_replaced_and_nothing_else(built):
    batch, layer = built
    assert not of_kind(batch, LayerNorm)
    assert len(of_kind(batch, BatchNorm)) == len(of_kind(layer, LayerNorm))
    np.testing.assert_array_equal(batch.flat.data, layer.flat.data)  # ones, zeros, the same weights


def test_in_training_what_is_said_of_a_pair_hangs_on_those_beside_it_and_in_use_it_does_not(built):
    batch, _ = built
    losses = {}
    for by_batch in (False, True):
        alone, beside = (norms.asked(batch, pairs, by_batch) for pairs in (PAIRS[:1], PAIRS))
        others = norms.asked(batch, PAIRS[1:], by_batch)
        counts = [len(target) + 1 for _, target in PAIRS]  # EOS, too
        mean = (counts[0] * alone + sum(counts[1:]) * others) / sum(counts)
        losses[by_batch] = beside, mean
    assert losses[False][0] == pytest.approx(losses[False][1], rel=1e-5)
    assert losses[True][0] != pytest.approx(losses[True][1], rel=1e-3)


def test_training_notes_statistics_and_asking_does_not(built):
    batch, _ = built
    (first, *_) = of_kind(batch, BatchNorm)
    norms.asked(batch, PAIRS, by_batch=True)
    assert not first.mean.data.any()
    norms.learn(batch, PAIRS, size=3, seed=0, epochs=2)
    assert first.mean.data.any()
    assert norms.TokenBatchNorm.by_batch is None
