import io
import math
import re

import numpy as np
import pytest

from minitransformer import (
    CPU,
    Transformer,
    TransformerConfig,
    cross_entropy,
    cross_entropy_backward,
)
from minitransformer.cases.case import (
    LABELS,
    SOURCE,
    SOURCE_MASK,
    TARGET,
    TARGET_MASK,
    B,
    D,
    F,
    H,
    S,
    T,
    V,
)
from minitransformer.cases.models import small_config
from minitransformer.models.stacks import DecoderLayer, EncoderLayer

both_norms = pytest.mark.parametrize("norm", ["post", "pre"])
every_tying = pytest.mark.parametrize("tying", ["three-way", "two-way", "none"])


def one_layer_config(**fields):
    sizes = dict(d_model=D, num_heads=H, d_ff=F, num_encoder_layers=1, num_decoder_layers=1)
    return TransformerConfig(V, V, **(sizes | dict(dropout=0.0, max_length=8) | fields))


def float_dtypes(x):
    """The floating types of all arrays in a cache, however deep."""
    if isinstance(x, tuple | list):
        return set().union(*map(float_dtypes, x))
    dtype = getattr(x, "dtype", np.dtype(bool))
    return {str(dtype)} if dtype.kind == "f" else set()


# Sizes


@both_norms
@every_tying
@pytest.mark.parametrize("layers", [1, 2])
def test_the_number_of_parameters_is_known_without_building_the_model(norm, tying, layers):
    config = TransformerConfig(
        *(9, 9 if tying == "three-way" else 7),
        *(6, 3, 5),
        num_encoder_layers=layers,
        num_decoder_layers=3 - layers,
        norm=norm,
        tying=tying,
    )
    assert config.num_parameters() == Transformer(config).num_parameters()


# Figure 1


def around(residual, x, sublayer):
    def norm(z):
        return residual.norm.forward(z)[0]

    return x + sublayer(norm(x)) if residual.pre_norm else norm(x + sublayer(x))


@both_norms
def test_an_encoder_layer_attends_to_itself_and_then_feeds_forward(norm):
    rng = np.random.default_rng(0)
    layer = EncoderLayer(small_config(norm), rng).to(dtype=np.float64)
    x = rng.standard_normal((B, S, D))
    h = around(
        layer.self_attention_residual,
        x,
        lambda h: layer.self_attention.forward(h, h, h, SOURCE_MASK)[0],
    )
    expected = around(layer.feed_forward_residual, h, lambda h: layer.feed_forward.forward(h)[0])
    y, _ = layer.forward(x, SOURCE_MASK)
    np.testing.assert_array_equal(y, expected)


@both_norms
def test_a_decoder_layer_attends_to_itself_then_to_the_memory_and_then_feeds_forward(norm):
    rng = np.random.default_rng(0)
    layer = DecoderLayer(small_config(norm), rng).to(dtype=np.float64)
    x, memory = rng.standard_normal((B, T, D)), rng.standard_normal((B, S, D))
    h = around(
        layer.self_attention_residual,
        x,
        lambda h: layer.self_attention.forward(h, h, h, TARGET_MASK)[0],
    )
    h = around(
        layer.cross_attention_residual,
        h,
        lambda h: layer.cross_attention.forward(h, memory, memory, SOURCE_MASK)[0],
    )
    expected = around(layer.feed_forward_residual, h, lambda h: layer.feed_forward.forward(h)[0])
    y, _ = layer.forward(x, memory, TARGET_MASK, SOURCE_MASK)
    np.testing.assert_array_equal(y, expected)


@both_norms
def test_the_model_embeds_encodes_decodes_and_projects(norm):
    model = Transformer(small_config(norm, "none"), dtype=np.float64)
    positions = model.positional_encoding.table
    source = model.source_embedding.weight.data[SOURCE] * math.sqrt(D) + positions[:S]
    target = model.target_embedding.weight.data[TARGET] * math.sqrt(D) + positions[:T]
    memory, _ = model.encoder.forward(source, SOURCE_MASK)
    y, _ = model.decoder.forward(target, memory, TARGET_MASK, SOURCE_MASK)
    expected = y @ model.output_projection.weight.data.T
    logits, _ = model.forward(SOURCE, TARGET)
    np.testing.assert_allclose(logits, expected, rtol=1e-12)


@both_norms
def test_each_stack_ends_normalised(norm):
    model = Transformer(small_config(norm), dtype=np.float64)
    rng = np.random.default_rng(0)
    memory, _ = model.encoder.forward(10 * rng.standard_normal((B, S, D)))
    y, _ = model.decoder.forward(10 * rng.standard_normal((B, T, D)), memory)
    for rows in (memory, y):
        np.testing.assert_allclose(rows.mean(axis=-1), 0, atol=1e-12)
        np.testing.assert_allclose(rows.var(axis=-1), 1, rtol=1e-3)


def test_the_order_of_source_words_matters():
    model = Transformer(small_config())
    one, _ = model.forward(np.array([[4, 7, 2]]), TARGET[:1])
    other, _ = model.forward(np.array([[7, 4, 2]]), TARGET[:1])
    assert not np.allclose(one, other)


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


# Dropout


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


@both_norms
def test_inference_drops_nothing_and_scales_nothing(norm):
    dropping = Transformer(small_config(norm), seed=3)
    without = Transformer(
        one_layer_config(norm=norm, num_encoder_layers=2, num_decoder_layers=2), seed=3
    )
    logits, _ = dropping.forward(SOURCE, TARGET)
    expected, _ = without.forward(SOURCE, TARGET, np.random.default_rng(0))
    np.testing.assert_array_equal(logits, expected)
    dropped, _ = dropping.forward(SOURCE, TARGET, np.random.default_rng(0))
    assert (dropped != logits).any()


# Parameters


@both_norms
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(norm):
    config = small_config(norm)
    weights = Transformer(config, seed=5).flat.data
    np.testing.assert_array_equal(Transformer(config, seed=5).flat.data, weights)
    others = Transformer(config, seed=6)
    for path, piece in others.flat.slices.items():
        is_drawn = not path.endswith(("gamma", "beta", "b_1", "b_2"))
        assert (others.flat.data[piece] != weights[piece]).any() == is_drawn, path


def test_no_two_drawn_weights_are_alike():
    model = Transformer(small_config(tying="none"))
    drawn = [p.data.reshape(-1) for p in model.parameters() if p.data.ndim == 2]
    values = np.concatenate(drawn)
    assert len(np.unique(values)) > 0.99 * len(values)


@pytest.mark.parametrize(
    ("tying", "matrices"),
    [
        ("three-way", ["source_embedding.weight"]),
        ("two-way", ["source_embedding.weight", "target_embedding.weight"]),
        (
            "none",
            ["source_embedding.weight", "target_embedding.weight", "output_projection.weight"],
        ),
    ],
)
def test_tied_matrices_are_one_parameter_held_once(tying, matrices):
    config = small_config(tying=tying)
    model = Transformer(config)
    source, target = model.source_embedding.weight, model.target_embedding.weight
    output = model.output_projection.weight
    assert (source is target) == (tying == "three-way")
    assert (output is target) == (tying != "none")
    assert [p for p in model.flat.slices if p.endswith(".weight")] == matrices
    sizes = [config.source_vocabulary_size] + [V] * (len(matrices) - 1)
    rest = sum(p.data.size for p in model.encoder.parameters() + model.decoder.parameters())
    assert model.num_parameters() == model.flat.data.size == rest + D * sum(sizes)


@every_tying
def test_tying_survives_a_change_of_type(tying):
    model = Transformer(small_config(tying=tying))
    before = [path for path, _ in model.named_parameters()]
    model.to(dtype=np.float64)
    assert [path for path, _ in model.named_parameters()] == before


@both_norms
def test_names_are_paths_through_figure_1(norm):
    paths = [path for path, _ in Transformer(one_layer_config(norm=norm)).named_parameters()]
    attention = ["w_query", "w_key", "w_value", "w_output"]
    feed_forward = ["w_1", "b_1", "w_2", "b_2"]
    gains = ["norm.gamma", "norm.beta"]
    final = ["norm.gamma", "norm.beta"] if norm == "pre" else []
    sublayers = {"self_attention": attention, "cross_attention": attention}
    encoder, decoder = (
        [
            f"{stack}.layers.0.{name}"
            for part in parts
            for name in (
                *(f"{part}.{w}" for w in sublayers.get(part, feed_forward)),
                *(f"{part}_residual.{g}" for g in gains),
            )
        ]
        + [f"{stack}.{g}" for g in final]
        for stack, parts in (
            ("encoder", ["self_attention", "feed_forward"]),
            ("decoder", ["self_attention", "cross_attention", "feed_forward"]),
        )
    )
    assert paths == ["source_embedding.weight", *encoder, *decoder]


def test_the_summary_of_a_model_marks_the_tied_matrices():
    file = io.StringIO()
    model = Transformer(small_config())
    model.summary(file)
    lines = file.getvalue().splitlines()
    assert lines[0] == f"Transformer: {model.num_parameters():,}"
    assert lines[2] == "    weight (11, 6) = 66"
    assert lines[4] == lines[-1] == "    weight (11, 6) (shared, counted above)"


@every_tying
def test_all_parameters_and_gradients_are_views_of_the_flat_arrays(tying):
    model = Transformer(small_config(tying=tying))
    for path, parameter in model.named_parameters():
        piece = model.flat.slices[path]
        assert np.shares_memory(parameter.data, model.flat.data[piece])
        assert np.shares_memory(parameter.grad, model.flat.grad[piece])
        assert parameter.data.size == piece.stop - piece.start
    assert piece.stop == model.flat.data.size


def test_the_flat_array_is_the_model():
    model, other = Transformer(small_config(), seed=1), Transformer(small_config(), seed=2)
    other.flat.data[:] = model.flat.data
    np.testing.assert_array_equal(
        other.forward(SOURCE, TARGET)[0], model.forward(SOURCE, TARGET)[0]
    )


# Types and devices


@both_norms
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_model_computes_in_its_own_type_throughout(norm, dtype):
    model = Transformer(small_config(norm), dtype=dtype)
    logits, cache = model.forward(SOURCE, TARGET, np.random.default_rng(0))
    (loss, nll), loss_cache = cross_entropy(logits, LABELS, 0.1)
    dlogits = cross_entropy_backward(1.0, loss_cache)
    (_, decode_cache), projection_cache = cache
    dy = model.output_projection.backward(dlogits, projection_cache)
    dmemory = model.decode_backward(dy, decode_cache)
    assert float_dtypes([logits, cache, loss, nll, loss_cache, dlogits, dy, dmemory]) == {dtype}
    assert float_dtypes([model.flat.data, model.flat.grad]) == {dtype}


def test_a_model_moved_to_another_type_is_the_same_model():
    model = Transformer(small_config())
    logits, _ = model.forward(SOURCE, TARGET)
    model.to(CPU, np.float64)
    assert model.device is CPU
    assert model.flat.data.dtype == model.positional_encoding.table.dtype == np.float64
    more_exact, _ = model.forward(SOURCE, TARGET)
    assert more_exact.dtype == np.float64
    np.testing.assert_allclose(more_exact, logits, rtol=1e-4, atol=1e-5)
    model.to(dtype=np.float32)
    np.testing.assert_array_equal(model.forward(SOURCE, TARGET)[0], logits)


def test_epsilon_of_the_config_reaches_every_norm():
    model = Transformer(one_layer_config(norm="pre", epsilon=0.25))
    norms = [m for path, m in model.named_modules() if path.endswith("norm")]
    assert len(norms) == 7
    assert {norm.epsilon for norm in norms} == {0.25}


def test_encode_decode_and_project_are_the_parts_of_forward():
    model = Transformer(small_config())
    memory, _ = model.encode(SOURCE, SOURCE_MASK)
    y, _ = model.decode(TARGET, memory, SOURCE_MASK)
    logits, _ = model.output_projection.forward(y)
    assert memory.shape == (B, S, D)
    assert y.shape == (*TARGET.shape, D)
    np.testing.assert_array_equal(logits, model.forward(SOURCE, TARGET)[0])


# Bad input

MODEL = Transformer(small_config())


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (V, ValueError, "run from 0 to 11, outside 0 <= id < 11, .* another vocabulary"),
        (-1, ValueError, "run from -1 to 9, outside 0 <= id < 11, .* another vocabulary"),
        (2.0, TypeError, "token ids must be integers; their dtype is float64"),
        (True, TypeError, "token ids must be integers; their dtype is bool"),
    ],
)
def test_ids_that_are_no_tokens_are_refused(side, wrong, error, words):
    ids = dict(source=SOURCE, target=TARGET)
    ids[side] = ids[side].copy().astype(np.result_type(type(wrong)))
    ids[side][1, 1] = wrong
    with pytest.raises(error, match=words):
        MODEL.forward(**ids)


def test_each_side_has_its_own_vocabulary():
    """Of 13 source and 11 target words, word 12 exists in the source alone."""
    model = Transformer(small_config(tying="none"))
    logits, _ = model.forward(np.where(SOURCE == 4, 12, SOURCE), TARGET)
    assert logits.shape == (B, T, 11)
    with pytest.raises(ValueError, match="to 12, outside 0 <= id < 11"):
        model.forward(SOURCE, np.where(TARGET == 4, 12, TARGET))


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_sequence_may_be_as_long_as_the_config_says_and_no_longer(side):
    ids = dict(source=np.ones((1, 2), dtype=int), target=np.ones((1, 2), dtype=int))
    ids[side] = np.ones((1, 8), dtype=int)
    assert MODEL.forward(**ids)[0].shape == (1, ids["target"].shape[1], V)
    ids[side] = np.ones((1, 9), dtype=int)
    with pytest.raises(ValueError, match=r"9 tokens is longer than the 8 .* larger max_length"):
        MODEL.forward(**ids)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (SOURCE, TARGET[:1]),
        (SOURCE[:1], TARGET),
        (SOURCE[0], TARGET),
        (SOURCE, TARGET[0]),
        (SOURCE[None], TARGET[None]),
        (SOURCE[:, :0], TARGET),
        (SOURCE, TARGET[:, :0]),
        (SOURCE[:0], TARGET[:0]),
    ],
)
def test_ids_that_are_not_two_batches_of_one_size_are_refused(source, target):
    words = (
        "source and target must be (B, S) and (B, T), with one batch size B and at least "
        f"one token each; their shapes are {source.shape} and {target.shape}"
    )
    with pytest.raises(ValueError, match=re.escape(words)):
        MODEL.forward(source, target)


def test_a_device_may_be_given_by_its_name():
    assert Transformer(small_config(), device="cpu").to("cpu").device is CPU
