from dataclasses import replace

import numpy as np
import pytest

from minitransformer import accelerated
from minitransformer.cases.pictures import VISION_TRANSFORMER
from minitransformer.models.stacks import Encoder
from minitransformer.models.vision_transformer import VisionTransformer

SIZE = VISION_TRANSFORMER.patch_size


def drawn():
    return np.random.default_rng(0).standard_normal((3, *VISION_TRANSFORMER.shape))


def model_of(**choices):
    return VisionTransformer(replace(VISION_TRANSFORMER, **choices), dtype=np.float64)


def test_its_stack_is_the_one_that_reads_sentences():
    assert type(model_of().stack) is Encoder


def test_but_for_their_positions_the_order_of_patches_says_nothing():
    model, x = model_of(), drawn()
    others = np.roll(x, SIZE, axis=(1, 2))  # whole patches
    assert (model.logits(others)[0] != model.logits(x)[0]).any()
    model.positions.table.data[:] = 0
    np.testing.assert_allclose(model.logits(others)[0], model.logits(x)[0], rtol=1e-12)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("awake", [False, True])
def test_where_it_looked_is_read_in_the_caches_of_references_and_twins(awake, norm):
    model = model_of(norm=norm)
    with accelerated(awake):
        _, cache = model.logits(drawn())
    weights = model.attention(cache)
    tokens = 1 + model.config.num_patches
    assert weights.shape == (2, 3, 2, tokens, tokens)  # (layers, B, H, 1 + N, 1 + N)
    np.testing.assert_allclose(weights.sum(axis=-1), 1)
    np.testing.assert_allclose(weights, expected_weights(model), atol=1e-12)


def expected_weights(model):
    """From the inputs and weights of the first layer on, by hand."""
    x, _ = model.embedding.forward(drawn())
    x, _ = model.class_token.forward(x)
    x, _ = model.positions.forward(x)
    found = []
    for layer in model.stack.layers:
        h, _ = layer.self_attention_residual.enter(x)
        q, k = (
            (h @ w.data).reshape(*h.shape[:2], 2, -1).swapaxes(1, 2)
            for w in (layer.self_attention.w_query, layer.self_attention.w_key)
        )  # (B, H, 1 + N, K)
        scores = np.exp(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
        found.append(scores / scores.sum(axis=-1, keepdims=True))
        x, _ = layer.forward(x)
    return np.stack(found)


def test_only_the_class_token_of_the_last_layer_is_read():
    model, x = model_of(), drawn()
    y, _ = model.features(x)
    assert y.shape == (3, model.config.d_model)
    model.stack.norm.beta.data += 1  # of all tokens alike
    np.testing.assert_allclose(model.features(x)[0], y + 1, rtol=1e-12)
