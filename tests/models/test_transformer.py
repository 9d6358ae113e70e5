import numpy as np
import pytest

from minitransformer import Transformer, TransformerConfig
from minitransformer.cases.case import SOURCE, TARGET, B, D, F, H, S, T, V
from minitransformer.cases.models import small_config
from minitransformer.models.stacks import DecoderLayer, EncoderLayer

both_norms = pytest.mark.parametrize("norm", ["post", "pre"])


def one_layer_config(**fields):
    sizes = dict(d_model=D, num_heads=H, d_ff=F, num_encoder_layers=1, num_decoder_layers=1)
    return TransformerConfig(V, V, **(sizes | dict(dropout=0.0, max_length=8) | fields))


@pytest.mark.parametrize("pad_id", [0, 10])
def test_the_pad_id_of_the_config_is_what_is_masked(pad_id):
    model = Transformer(one_layer_config(pad_id=pad_id, tying="none"))
    source = np.where(SOURCE == 0, pad_id, SOURCE)
    target = np.where(TARGET == 0, pad_id, TARGET)
    expected, _ = model.forward(source, target)
    for embedding in (model.source_embedding, model.target_embedding):
        embedding.weight.data[pad_id] += 1
    logits, _ = model.forward(source, target)
    np.testing.assert_array_equal(logits[TARGET != 0], expected[TARGET != 0])


class Recorder:
    """A generator that keeps everything and notes what it is asked for."""

    def __init__(self):
        self.shapes = []

    def random(self, shape, dtype):
        self.shapes.append(shape)
        return np.ones(shape, dtype=dtype)


@pytest.mark.parametrize(
    ("field", "shapes"),
    [
        ("dropout", [(B, S, D)] * 3 + [(B, T, D)] * 4),
        ("attention_dropout", [(B, H, S, S), (B, H, T, T), (B, H, T, S)]),
        ("feed_forward_dropout", [(B, S, F), (B, T, F)]),
    ],
)
@both_norms
def test_each_dropout_acts_where_the_config_says(norm, field, shapes):
    model = Transformer(one_layer_config(norm=norm, **{field: 0.1}))
    recorder = Recorder()
    model.forward(SOURCE, TARGET, recorder)
    assert recorder.shapes == shapes


class DropsAll:
    def random(self, shape, dtype):
        return np.zeros(shape, dtype=dtype)


def around(residual, x, sublayer):
    def norm(z):
        return residual.norm.forward(z)[0]

    return x + sublayer(norm(x)) if residual.pre_norm else norm(x + sublayer(x))


@both_norms
@pytest.mark.parametrize("make", [EncoderLayer, DecoderLayer])
def test_dropout_takes_what_a_sublayer_adds_and_never_the_residual_stream(norm, make):
    rng = np.random.default_rng(0)
    layer = make(small_config(norm), rng).to(dtype=np.float64)
    x, memory = rng.standard_normal((2, B, T, D))
    inputs = (x,) if make is EncoderLayer else (x, memory)
    y, _ = layer.forward(*inputs, rng=DropsAll())
    for name in ("self_attention", "cross_attention", "feed_forward"):
        if hasattr(layer, name):
            x = around(getattr(layer, f"{name}_residual"), x, np.zeros_like)
    np.testing.assert_array_equal(y, x)


def test_epsilon_of_the_config_reaches_every_norm():
    model = Transformer(one_layer_config(norm="pre", epsilon=0.25))
    norms = [m for path, m in model.named_modules() if path.endswith("norm")]
    assert len(norms) == 7
    assert {norm.epsilon for norm in norms} == {0.25}
