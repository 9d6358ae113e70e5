"""A training and two searches in a few lines, in which every function of ``own.py`` has a place."""

import numpy as np

from minitransformer import Adam, Transformer, TransformerConfig
from minitransformer.data.text.batches import make_batches
from minitransformer.decoding import beam_search, greedy
from minitransformer.optim.clipping import clip_scale, gradient_norm
from minitransformer.optim.schedule import linear_decay, noam


def tiny_model(norm="pre"):
    rates = dict.fromkeys(("dropout", "attention_dropout", "feed_forward_dropout"), 0.1)
    sizes = dict(d_model=8, num_heads=2, d_ff=12, num_encoder_layers=2, num_decoder_layers=2)
    return Transformer(TransformerConfig(16, 16, norm=norm, max_length=20, **sizes, **rates))


def batch():
    rng = np.random.default_rng(4)
    pairs = [tuple(rng.integers(4, 16, n).tolist() for n in (5, 4)) for _ in range(6)]
    return make_batches(pairs, 400)[0]


def train(steps, norm="pre"):
    """A training and two searches in a few lines; the losses, the gradients, what was found."""
    model, data = tiny_model(norm), batch()
    adam, losses = Adam(model.flat), []
    for step in range(1, steps + 1):
        model.zero_grad()
        rng = np.random.default_rng(step)
        (loss, _), cache = model.loss(data, rng, smoothing=0.1)
        model.loss_backward(1.0, cache)
        scale = clip_scale(gradient_norm(model.flat.grad), 1.0)
        adam.step(linear_decay(step, 1e-2, 3, 50) + 0 * noam(step, 8, 3), scale)
        losses.append(float(loss))
    best = beam_search(model, data.source[:2], n_best=2)
    found = [h.ids for h in [*greedy(model, data.source[:2]), *best[0], *best[1]]]
    return np.array(losses), model.flat.grad.copy(), found
