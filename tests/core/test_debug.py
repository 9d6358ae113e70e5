"""Who makes a NaN or an infinity is named, and looking leaves no trace."""

import copy
import re

import numpy as np
import pytest

from minitransformer import Transformer, debug
from minitransformer.cases.case import BATCH, SOURCE, TARGET
from minitransformer.cases.models import small_config
from minitransformer.layers.attention import MultiHeadAttention
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.layers.linear import Linear

NAN, INF = float("nan"), float("inf")
both_norms = pytest.mark.parametrize("norm", ["post", "pre"])


def train_once(model):
    logits, cache = model.forward(SOURCE, target=TARGET)
    model.backward(np.ones_like(logits), cache)


def attributes(model):
    return [(path, list(vars(module))) for path, module in model.named_modules()]


def assert_told(words, module, run):
    """That it is said of what is done with the module: "nan first appears in the …"."""
    value, where = words.split(" ", 1)
    said = re.escape(f"{value} first appears in the {where}")
    with pytest.raises(FloatingPointError, match=f"^{said}"), debug(module):
        run(module)


@both_norms
@pytest.mark.parametrize(("parameter", "words"), [
    ("source_embedding.weight", "nan output of Transformer.source_embedding.forward"),
    *(
        (f"{layer}.{name}", f"nan output of Transformer.{layer}.forward, at index (0, 0")
        for layer, name in (
            ("encoder.layers.0.self_attention", "w_key"),
            ("encoder.layers.1.feed_forward", "b_1"),
            ("decoder.layers.0.cross_attention", "w_value"),
            ("decoder.layers.1.self_attention_residual.norm", "beta"),
        )
    ),
])  # fmt: skip
def test_the_layer_is_named_whose_output_has_the_first_nan(norm, parameter, words):
    model = Transformer(small_config(norm, "none"))
    dict(model.named_parameters())[parameter].data[...] = NAN
    assert_told(words, model, train_once)


def test_where_the_first_infinity_stands_is_said():
    model = Transformer(small_config("pre"))
    model.decoder.layers[1].feed_forward.b_2.data[4] = -INF
    words = "output of Transformer.decoder.layers.1.feed_forward.forward, at index (0, 0, 4) of an"
    assert_told(f"-inf {words} array of shape (3, 4, 6)", model, train_once)


def test_the_layer_is_named_whose_backward_makes_a_nan():
    model = Transformer(small_config("post"))
    logits, cache = model.forward(SOURCE, TARGET)
    model.encoder.layers[1].feed_forward.w_1.data[2, 3] = NAN  # the cache refers to it
    words = "nan output of Transformer.encoder.layers.1.feed_forward.backward, at index (0, 0, 2)"
    assert_told(words, model, lambda model: model.backward(np.ones_like(logits), cache))


def test_a_nan_in_the_gradient_handed_to_a_model_is_seen():
    model = Transformer(small_config())
    logits, cache = model.forward(SOURCE, TARGET)
    dlogits = np.zeros_like(logits)
    dlogits[2, 1, 7] = NAN
    words = "nan input of Transformer.backward, at index (2, 1, 7) of an array of shape (3, 4, 11)"
    assert_told(words, model, lambda model: model.backward(dlogits, cache))


def test_every_input_of_a_lone_layer_is_looked_at():
    x = np.ones((1, 3, 4), np.float32)
    spoiled = x.copy()
    spoiled[0, 1, 2] = NAN
    words = "nan input of {}.forward, at index (0, 1, 2) of an array of shape (1, 3, 4)"
    layer = LayerNorm(4)
    assert_told(words.format("LayerNorm"), layer, lambda layer: layer.forward(spoiled))
    layer = MultiHeadAttention(4, 2, np.random.default_rng(0))
    for inputs in ((spoiled, x, x), (x, spoiled, x), (x, x, spoiled)):
        assert_told(
            words.format("MultiHeadAttention"), layer, lambda layer, x=inputs: layer.forward(*x)
        )


def test_the_parameter_is_named_whose_gradient_is_no_number():
    """Finite factors, a product that is not: the gradients of the inputs are all in order."""
    model = Transformer(small_config("post"))
    logits, cache = model.forward(SOURCE, TARGET)
    feed_forward = model.encoder.layers[1].feed_forward
    backward = feed_forward.backward

    def overflowing(dy, cache):
        dx = backward(dy, cache)
        feed_forward.w_1.grad[2, 3] = INF
        return dx

    feed_forward.backward = overflowing
    words = "inf gradient of Transformer.encoder.layers.1.feed_forward.w_1, at index (2, 3) of an"
    of_shape = f"{words} array of shape (6, 7)"
    assert_told(of_shape, model, lambda model: model.backward(np.ones_like(logits), cache))


def test_the_projection_is_named_when_a_loss_spoils_its_gradient():
    model = Transformer(small_config("pre", "none"))
    _, cache = model.loss(BATCH)
    _, (projection_cache, *_) = cache
    x, *_ = projection_cache
    x[0, 0, 5] = NAN  # only the gradient of the weight is made of it
    words = "nan gradient of Transformer.output_projection.weight, at index"
    assert_told(words, model, lambda model: model.loss_backward(1.0, cache))


def test_a_loss_is_looked_at():
    model = Transformer(small_config("pre", "none"))
    model.output_projection.weight.data[3, 2] = NAN
    assert_told(
        "nan output of Transformer.loss, at index () of an", model, lambda model: model.loss(BATCH)
    )


@both_norms
def test_debug_changes_no_result_and_leaves_no_trace(norm):
    model = Transformer(small_config(norm))
    before = attributes(model)
    train_once(model)
    expected = model.flat.grad.copy()
    model.zero_grad()
    with debug(model) as same:
        assert same is model
        train_once(model)
    np.testing.assert_array_equal(model.flat.grad, expected)
    assert attributes(model) == before


def test_debug_leaves_no_trace_after_an_error():
    model = Transformer(small_config())
    before = attributes(model)
    model.encoder.layers[0].feed_forward.b_1.data[:] = NAN
    with pytest.raises(FloatingPointError), debug(model):
        train_once(model)
    assert attributes(model) == before
    train_once(model)  # nothing looks any more


def test_without_debug_nothing_looks_at_what_a_layer_returns():
    layer = LayerNorm(4)
    y, _ = layer.forward(np.full((2, 4), NAN))
    assert np.isnan(y).all()
    assert list(vars(layer)) == ["gamma", "beta", "epsilon"]
    assert layer.forward.__func__ is LayerNorm.forward


@pytest.mark.parametrize("copied", [copy.deepcopy, Transformer.replica])
def test_a_copy_made_while_debug_looks_works_with_parameters_of_its_own(copied):
    model = Transformer(small_config())
    with debug(model):
        other = copied(model)
        train_once(other)
    assert other.flat.grad.any()
    assert not model.flat.grad.any()


def test_debug_may_be_nested_and_looks_at_keyword_arguments():
    layer = Linear(3, 2, np.random.default_rng(0))
    x = np.full((1, 3), np.nan, np.float32)
    with debug(layer):
        with debug(layer):
            pass
        with pytest.raises(FloatingPointError, match=r"the input of Linear\.forward"):
            layer.forward(x=x)
    assert np.isnan(layer.forward(x)[0]).all()
