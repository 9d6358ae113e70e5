"""A model and batches of random sentences that a benchmark is done with in a moment."""

import numpy as np
from _workload import Workload

from minitransformer import Transformer, TransformerConfig
from minitransformer.data.text.batches import make_batches

V = 40


def tiny_workload(count=4, **fields):
    """A Workload of ``count`` batches, with padding in each."""
    sizes = dict(d_model=16, num_heads=2, d_ff=32, num_encoder_layers=2, num_decoder_layers=2)
    config = TransformerConfig.preset("tiny", V, max_length=20, **(sizes | fields))
    rng = np.random.default_rng(0)
    pairs = [
        tuple(rng.integers(4, V, rng.integers(3, 12)).tolist() for side in range(2))
        for _ in range(20 * count)
    ]
    batches = make_batches(pairs, 200, rng)[:count]
    weights = {path: p.data for path, p in Transformer(config, seed=3).named_parameters()}
    # LayerNorm gains of 1 and biases of 0 would hide that one is taken for another.
    weights = {path: x + 0.1 * rng.standard_normal(x.shape) for path, x in weights.items()}
    weights = {path: x.astype(np.float32) for path, x in weights.items()}
    return Workload("random sentences", config, weights, batches, padding=0.1)
