"""The learner's own Transformer: its solution is right, and plausible slips are told what they are.

That stubs are to do and that junk breaks nothing is in ``test_exercises.py``, for all exercises.
"""

import ast
import dataclasses
import inspect

import numpy as np
import pytest
from exercise_files import functions_in, solution_of, stub_of

from minitransformer import loss, masks
from minitransformer.data.vocabulary import BOS, EOS, PAD
from minitransformer.decoding import beam_search, greedy
from minitransformer.decoding.hypothesis import word_scores
from minitransformer.exercises import check_exercise, parts_of
from minitransformer.exercises.parts import RIGHT, WRONG
from minitransformer.gradcheck.cases import (
    LABELS,
    NOTHING_ALLOWED,
    SOURCE,
    SOURCE_MASK,
    TARGET_MASK,
    B,
    D,
    F,
    H,
    K,
    S,
    T,
    V,
    small_config,
)
from minitransformer.layers import (
    attention,
    dropout,
    embedding,
    feed_forward,
    layer_norm,
    linear,
    positional_encoding,
    relu,
    residual,
    softmax,
)
from minitransformer.training import adam, clipping, schedule
from minitransformer.transformer import DecoderLayer, EncoderLayer, Transformer

PARTS = parts_of("own")
PART_OF = {function: part for part in PARTS for function in part.functions}
FILE = solution_of("own").read_text(encoding="utf-8")
DEFINITIONS = {
    node.name: ast.get_source_segment(FILE, node)
    for node in ast.parse(FILE).body
    if isinstance(node, ast.FunctionDef)
}
SOLUTION = functions_in(solution_of("own"))
PACKAGE = {  # by name, whatever the package calls alike
    name: value
    for module in (
        *(schedule, adam, clipping, masks, loss, attention, dropout, embedding, feed_forward),
        *(layer_norm, linear, positional_encoding, relu, residual, softmax),
    )
    for name, value in vars(module).items()
    if name in PART_OF and inspect.isfunction(value)
}


def solution_with(*changes):
    """The functions of the solution with some changes: (function, what is there, what instead)."""
    source = FILE
    for function, old, new in changes:
        definition = DEFINITIONS[function]
        assert definition.count(old) == 1
        source = source.replace(definition, definition.replace(old, new))
    functions = {}
    exec(compile(source, "own.py", "exec"), functions)
    return functions


def wrong_parts(functions):
    verdicts = check_exercise("own", functions).verdicts
    assert {verdict.status for verdict in verdicts} <= {RIGHT, WRONG}
    return {verdict.part.functions[0] for verdict in verdicts if verdict.status == WRONG}


def test_stub_and_solution_have_the_signatures_that_the_package_has():
    stub = functions_in(stub_of("own"))
    for name in PART_OF:
        signature = inspect.signature(stub[name])
        assert inspect.signature(SOLUTION[name]) == signature
        if name in PACKAGE:
            theirs = inspect.signature(PACKAGE[name]).parameters.values()
            assert list(signature.parameters.values()) == [p for p in theirs if p.name != "workers"]


@pytest.mark.parametrize("path", [stub_of("own"), solution_of("own")], ids=["stub", "solution"])
def test_the_file_needs_numpy_alone(path):
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    assert all(isinstance(node, ast.Import) for node in imports)
    assert {alias.name for node in imports for alias in node.names} <= {"math", "numpy"}


def test_the_file_has_the_ids_of_the_vocabulary():
    for functions in (functions_in(stub_of("own")), SOLUTION):
        assert (functions["PAD"], functions["BOS"], functions["EOS"]) == (PAD, BOS, EOS)


def test_the_stubs_stand_in_the_order_of_the_lessons_and_name_them():
    stub = functions_in(stub_of("own"))
    lessons = [part.lesson for part in PARTS]
    assert lessons == sorted(lessons)
    assert list(dict.fromkeys(PART_OF[name] for name in stub if name in PART_OF)) == PARTS
    for part in PARTS:
        assert f"(lesson {part.lesson})" in stub[part.functions[0]].__doc__


def drawn(*shapes):
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal(shape).astype(np.float32) for shape in shapes)


def rng():
    return np.random.default_rng(1)


HEADS = drawn((B, H, T, K), (B, H, S, K), (B, H, S, K))
LINEAR_MAPS = drawn((D, F), (F,), (F, D), (D,))
PAIRS = {
    "linear": drawn((B, T, D), (D, F), (F,)),
    "relu": drawn((B, T, D)),
    "softmax": (*drawn((B, H, T, S)), NOTHING_ALLOWED),
    "cross_entropy": (*drawn((B, T, V)), LABELS, 0.1, 0, 20),
    "embedding": (SOURCE, *drawn((V, D))),
    "positional_encoding": drawn((B, T, D), (T + 2, D)),
    "layer_norm": drawn((B, T, D), (D,), (D,)),
    "scaled_dot_product_attention": (*HEADS, SOURCE_MASK, 0.3),
    "multi_head_attention": (*drawn(*[(B, S, D)] * 3, *[(D, D)] * 4), H, SOURCE_MASK, 0.3),
    "residual": (*drawn((B, T, D), (B, T, D)), 0.3),
    "feed_forward": (*drawn((B, T, D)), *LINEAR_MAPS, 0.3),
    "dropout": (*drawn((B, T, D)), 0.3),
}


def y_and_gradients(functions, name):
    """All numbers that come out of a pair for float32 inputs."""
    draws = "rng" in inspect.signature(PACKAGE[name]).parameters
    y, cache = functions[name](*PAIRS[name], *([rng()] if draws else []))
    dy = np.float32(0.5) if name == "cross_entropy" else drawn(y.shape)[0]
    return [*in_tuple(y), *in_tuple(functions[f"{name}_backward"](dy, cache))]


def in_tuple(value):
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("name", PAIRS)
def test_the_solution_computes_the_same_bits_as_the_package_in_float32(name):
    mine, theirs = (y_and_gradients(functions, name) for functions in (SOLUTION, PACKAGE))
    for array, expected in zip(mine, theirs, strict=True):
        assert array.dtype == expected.dtype == np.float32
        assert np.array_equal(array, expected)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(
    ("name", "module", "inputs", "given_masks"),
    [
        ("encoder_layer", EncoderLayer, drawn((B, S, D)), (SOURCE_MASK,)),
        ("decoder_layer", DecoderLayer, drawn((B, T, D), (B, S, D)), (TARGET_MASK, SOURCE_MASK)),
    ],
    ids=["encoder", "decoder"],
)
def test_a_layer_of_the_solution_computes_the_same_bits_as_the_module(
    name, module, inputs, given_masks, norm
):
    config = dataclasses.replace(small_config(norm), dropout=0.3, attention_dropout=0.1)
    layer = module(config, rng())
    y, cache = layer.forward(*inputs, *given_masks, rng())
    (dy,) = drawn(y.shape)
    of_inputs = in_tuple(layer.backward(dy, cache))
    parameters = [parameter for _, parameter in layer.named_parameters()]

    weights = iter(parameter.data for parameter in parameters)
    sizes = [4, 2] * (len(parameters) // 6)  # a sublayer and its LayerNorm, again and again
    groups = [tuple(next(weights) for _ in range(size)) for size in sizes]
    options = norm == "pre", config.epsilon, 0.3, 0.1, config.feed_forward_dropout
    mine, cache = SOLUTION[name](*inputs, *groups, H, *given_masks, *options, rng())
    gradients = SOLUTION[f"{name}_backward"](dy, cache)
    mine = [mine, *gradients[: len(inputs)], *sum(gradients[len(inputs) :], ())]
    theirs = [y, *of_inputs, *(parameter.grad for parameter in parameters)]
    for array, expected in zip(mine, theirs, strict=True):
        assert array.dtype == np.float32
        assert np.array_equal(array, expected)


@pytest.fixture(scope="module")
def model():
    """A model sure enough of itself to end its sentences at different lengths."""
    model = Transformer(small_config(), seed=6, dtype=np.float64)
    for _, parameter in model.named_parameters():
        parameter.data *= 2
    return model


def log_probabilities_of(model, source):
    """What a search of one's own is given for a batch of sources, or for the only one of them."""

    def log_probabilities(said):
        sources = np.broadcast_to(source, (len(said), source.shape[1]))
        logits, _ = model.forward(sources, said)
        scores, log_total = word_scores(logits[:, -1])
        return scores - log_total

    return log_probabilities


def test_greedy_of_the_solution_finds_what_the_package_finds(model):
    expected = greedy(model, SOURCE, max_length=7)
    start = np.full((len(SOURCE), 1), BOS)
    found = SOLUTION["greedy"](log_probabilities_of(model, SOURCE), start, 7)
    for ids, hypothesis in zip(found.tolist(), expected, strict=True):
        ids = ids[: ids.index(EOS)] if hypothesis.finished else ids
        assert ids == hypothesis.ids
    assert len({len(hypothesis.ids) for hypothesis in expected}) > 1


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_beam_search_of_the_solution_finds_what_the_package_finds(alpha, model):
    options = {"beam_size": 4, "alpha": alpha, "n_best": 4, "max_length": 6}
    for source, expected in zip(
        SOURCE[:, None], beam_search(model, SOURCE, **options), strict=True
    ):
        log_probabilities = log_probabilities_of(model, source)
        found = SOLUTION["beam_search"](log_probabilities, np.array([[BOS]]), 6, 4, alpha)
        assert [ids for ids, _ in found] == [h.ids + [EOS] * h.finished for h in expected]
        wanted = [h.log_probability for h in expected]
        assert np.allclose([log_p for _, log_p in found], wanted, rtol=1e-12)


SLIPS = [  # a function of the solution, what is there, what instead, and what is said of it
    ("linear", "y += bias", "y -= bias", "y = x W + b"),
    ("linear_backward", "dy.sum(axis=0)", "dy[0]", "dbias"),
    ("linear_backward", "dy.sum(axis=0)", "dy.mean(axis=0)", "12 is N, the number of rows"),
    ("linear_backward", "dy @ weight.T", "2 * dy @ weight.T", "2 times too large"),
    ("relu", "np.maximum(x, 0)", "np.abs(x)", "negative entries become 0"),
    ("relu_backward", "dy * alive", "dy", "the slope is 1 where x is positive"),
    ("relu_backward", "dy * alive", "dy * (dy > 0)", "whatever dy is"),
    ("softmax", "np.where(peak == -np.inf, 0, peak)", "0", "subtract the largest score"),
    ("softmax", "np.where(peak == -np.inf, 0, peak)", "peak", "where nothing is allowed"),
    ("softmax", "np.where(mask, x, -np.inf)", "np.where(mask, -np.inf, x)", "True is where"),
    ("softmax", "np.where(mask, x, -np.inf)", "np.where(mask, x, 0)", "score is −∞, not 0"),
    ("softmax", "np.where(mask, x, -np.inf)", "np.where(mask, x, -1e9)", "all weights are 0"),
    ("softmax", "weights.sum(axis=-1", "weights.sum(axis=-2", "its sum along the last axis"),
    (
        "softmax_backward",
        " - (dweights * weights).sum(axis=-1, keepdims=True)",
        "",
        "is the sum over the row in it",
    ),
    ("cross_entropy", "t != pad_id", "t == t", "target is padding does not count"),
    ("cross_entropy", "t != pad_id", "t != 0", "pad_id, which may not be 0"),
    ("cross_entropy", "max(real.sum(), 1)", "len(t)", "divide by how many there are"),
    ("cross_entropy", "max(real.sum(), 1)", "real.sum()", "and not 0 / 0"),
    ("cross_entropy", "max(real.sum(), 1)", "1", "a mean over the positions"),
    ("cross_entropy", "if num_tokens is None", "if True", "the sums are divided by it"),
    ("cross_entropy", "log_p.mean(axis=-1)", "log_p.sum(axis=-1)", "loss with smoothing=0.3"),
    ("cross_entropy", "z = z - z.max(axis=-1, keepdims=True)", "pass", "after the largest z"),
    ("cross_entropy", "return (loss, nll)", "return (loss, loss)", "without smoothing"),
    ("cross_entropy", "smoothing) * nll + smoothing", "smoothing) * nll + 0", "loss"),
    ("cross_entropy_backward", "share * dloss", "share", "right only where dy is 1"),
    ("cross_entropy_backward", "share * dloss", "share * dloss * len(t)", "divided as the loss"),
    ("cross_entropy_backward", " - smoothing / shape[-1]", "", "with the smoothed q"),
    ("cross_entropy_backward", "(share * dloss)[:, None]", "dloss / 9", "dlogits of nothing but"),
    ("embedding", "weight[ids] * scale", "weight[ids]", "multiply by √D"),
    ("embedding", "weight.shape[1]", "weight.shape[0]", "of the width D, not of V"),
    (
        "embedding_backward",
        "np.add.at(dweight, ids, dx * scale)",
        "dweight[ids] += dx * scale",
        "+=",
    ),
    ("embedding_backward", "dx * scale", "dx", "√D times as large"),
    ("sinusoidal_encoding", "np.stack", "np.concatenate", "yours has all sines first"),
    ("sinusoidal_encoding", "np.arange(length)", "np.arange(1, length + 1)", "count from 0"),
    ("sinusoidal_encoding", "-np.arange(0, d_model, 2)", "-np.arange(d_model // 2)", "not i/D"),
    (
        "sinusoidal_encoding",
        "np.sin(angle), np.cos(angle)",
        "np.cos(angle), np.sin(angle)",
        "before",
    ),
    ("positional_encoding", "table[: x.shape[-2]]", "table[-x.shape[-2] :]", "the first T rows"),
    ("positional_encoding_backward", "return dy", "return 2 * dy", "2 times too large"),
    ("layer_norm", "np.sqrt(variance + epsilon)", "np.sqrt(variance) + epsilon", "under the root"),
    ("layer_norm", "variance + epsilon", "variance + 1e-5", "the epsilon that is given"),
    ("layer_norm", "(centred * centred).mean(", "centred.var(ddof=1, ", "not by D − 1"),
    ("layer_norm", "np.sqrt(variance + epsilon)", "variance + epsilon", "divide by σ, the root"),
    ("layer_norm", "gamma * x_hat + beta", "gamma * (x_hat + beta)", "added after the gain"),
    ("layer_norm_backward", "dx_hat = dy * gamma", "dx_hat = dy", "multiplied by the gain"),
    ("layer_norm_backward", "dx_hat - through_mean", "dx_hat", "such as mean(dx̂)"),
    ("layer_norm_backward", " - through_sigma", "", "such as x̂ mean(dx̂ x̂)"),
    ("layer_norm_backward", "dy.sum(axis=rows)", "dy.sum(axis=0)", "over the leading axes"),
    ("padding_mask", "ids != pad_id", "ids == pad_id", "yours is the other way round"),
    ("padding_mask", "ids != pad_id", "ids != 0", "which may not be 0"),
    ("padding_mask", "[:, None, None, :]", "", "should have (3, 1, 1, 5)"),
    (
        "padding_mask",
        "[:, None, None, :]",
        "[:, None, None, :] * 1.0",
        "boolean array; it is float",
    ),
    ("causal_mask", "<=", ">=", "yours look ahead"),
    ("causal_mask", "<=", "<", "look at itself, too"),
    ("causal_mask", "<=", ">", "the other way round"),
    ("causal_mask", "[None, None]", "", "should have (1, 1, 4, 4)"),
    ("scaled_dot_product_attention", "1 / math.sqrt(query.shape[-1])", "1.0", "divided by √K"),
    ("scaled_dot_product_attention", "math.sqrt(query.shape[-1])", "query.shape[-1]", "not by K"),
    ("scaled_dot_product_attention", "softmax(scores, mask)", "softmax(scores)", "given to the"),
    (
        "scaled_dot_product_attention",
        "softmax(scores, mask)",
        "softmax(scores, None if mask is None else ~mask)",
        "yours is the other way round",
    ),
    ("scaled_dot_product_attention", "dropout(weights, p, rng)", "weights, None", "with p and rng"),
    ("scaled_dot_product_attention_backward", " * scale", "", "the root of the head width"),
    (
        "scaled_dot_product_attention_backward",
        "dropout_backward(dweights, dropout_cache)",
        "dweights",
        "back through the dropout",
    ),
    (
        "scaled_dot_product_attention_backward",
        "weights.swapaxes(-1, -2) @ dy",
        "softmax_cache.swapaxes(-1, -2) @ dy",
        "multiplied by the weights after it",
    ),
    (
        "split_heads",
        "x.reshape(batch, length, num_heads, d_model // num_heads).swapaxes(1, 2)",
        "x.reshape(batch, num_heads, length, -1)",
        "this mixes positions",
    ),
    ("split_heads", ".swapaxes(1, 2)", "", "exchange the axes T and H"),
    (
        "split_heads",
        "num_heads, d_model // num_heads).swapaxes(1, 2)",
        "-1, num_heads).transpose(0, 3, 1, 2)",
        "not k · H + h",
    ),
    ("merge_heads", ".swapaxes(1, 2)", "", "this mixes positions"),
    ("merge_heads", ".swapaxes(1, 2)", ".transpose(0, 2, 3, 1)", "not k · H + h"),
    ("multi_head_attention", "merge_heads(heads)", "heads.reshape(query.shape)", "by merge_heads"),
    ("multi_head_attention", "linear(value, w_value)", "linear(key, w_value)", "made of value"),
    ("multi_head_attention", "v, mask, p, rng", "v, None, p, rng", "the mask is to be handed on"),
    ("multi_head_attention", "v, mask, p, rng", "v, mask", "p and rng are to be handed on"),
    ("multi_head_attention_backward", "(dk, k_cache)", "(dk, v_cache)", "the cache of its own"),
    ("multi_head_attention_backward", "dw_query, dw_key,", "dw_key, dw_query,", "it is dw_query"),
    ("residual", "return x + h", "return 2 * x + h", "z = x + h"),
    ("residual", "return x + h", "x += h\n    return x", "must not write to its inputs"),
    ("residual", "h, cache = dropout(h, p, rng)", "cache = None", "there is dropout of h"),
    (
        "residual",
        "dropout(h, p, rng)\n    return x + h",
        "dropout(x + h, p, rng)\n    return h",
        "alone",
    ),
    ("residual_backward", "dropout_backward(dz, cache)", "dz", "dh"),
    ("residual_backward", "return dz,", "return 0 * dz,", "dx: it is zero everywhere"),
    ("feed_forward", "h, relu_cache = relu(h)", "_, relu_cache = relu(h)", "between the two maps"),
    ("feed_forward", "dropout(h, p, rng)", "h, None", "there is dropout after the ReLU"),
    ("feed_forward_backward", "relu_backward(dh, relu_cache)", "dh", "the ReLU and the first map"),
    ("feed_forward_backward", "dropout_backward(dh, dropout_cache)", "dh", "goes back through"),
    ("encoder_layer", "num_heads, mask,", "num_heads, None,", "each attention gets its own mask"),
    ("encoder_layer", "*network, hidden_p, rng", "*network, p, rng", "hidden_p for the network"),
    ("encoder_layer", "enter(x, network_norm,", "enter(x, attention_norm,", "each sublayer makes"),
    ("encoder_layer", "feed_forward(h, *", "feed_forward(x, *", "each sublayer makes"),
    (
        "encoder_layer_backward",
        "dquery + dkey + dvalue",
        "dquery + dkey",
        "as query, key and value",
    ),
    ("encoder_layer_backward", "(dx, dquery +", "(0, dquery +", "x goes past the sublayer"),
    ("encoder_layer_backward", "(dx, dh,", "(0, dh,", "last right one is dnetwork.w_1"),
    ("encoder_layer_backward", "tuple(dnetwork), ", "*dnetwork, ", "must return dx, dattention, "),
    (
        "encoder_layer_backward",
        "tuple(dnetwork), ",
        "dnetwork[0], ",
        "must be a tuple, (dw_1, db_1",
    ),
    ("decoder_layer", "num_heads, memory_mask", "num_heads, None", "gets its own mask"),
    ("decoder_layer", "num_heads, mask,", "num_heads, None,", "gets its own mask"),
    ("decoder_layer", "h, memory, memory,", "h, h, h,", "the memory is key and value"),
    ("decoder_layer", "h, memory, memory,", "memory, h, h,", "raised ValueError"),
    (
        "decoder_layer_backward",
        "dkey + dvalue\n    dx",
        "dkey\n    dx",
        "dmemory is the sum of both",
    ),
    (
        "decoder_layer_backward",
        "enter_backward(dx, dh, enter_cache)\n    dcross",
        "enter_backward(0, dh, enter_cache)\n    dcross",
        "last right one is dcross_attention.w_query",
    ),
    (
        "decoder_layer_backward",
        "dself, dself_norm, dcross,",
        "dcross, dself_norm, dself,",
        "it is d",
    ),
    ("dropout", "return x * keep * scale", "return x * keep", "scaled by 1 / (1 − p)"),
    ("dropout", ">= p", "< p", "keep where the random number is p or more"),
    ("dropout", ", dtype=np.float32", "", "float64 draws others"),
    ("dropout", "rng is None or p == 0", "rng is None", "must draw nothing"),
    ("dropout", "(keep, scale)", "(rng.random(x.shape) >= p, scale)", "draw from rng once"),
    ("dropout", "rng is None or p == 0", "p == 0", "'NoneType' object has no attribute 'random'"),
    (
        "dropout_backward",
        "dy * keep * scale",
        "dy * (np.random.default_rng(1).random(dy.shape) >= 0.4) * scale",
        "was the dropout mask drawn again in backward?",
    ),
    ("dropout_backward", "dy * keep * scale", "dy * keep", "1.66667 times too small"),
    ("adam_update", "m / (1 - beta_1**t)", "m", "m is to be divided by"),
    ("adam_update", "v / (1 - beta_2**t)", "v", "v is to be divided by"),
    ("adam_update", "grad = grad * scale", "grad, t = grad * scale, t + 1", "1 at the first"),
    ("adam_update", "grad = grad * scale", "grad, t = grad * scale, t - 1", "from 1"),
    ("adam_update", "grad = grad * scale", "grad *= scale", "must not write"),
    ("adam_update", "grad = grad * scale", "pass", "in both moments"),
    ("adam_update", "np.sqrt(v_hat) + epsilon", "np.sqrt(v_hat + epsilon)", "not under it"),
    ("adam_update", "data -= learning_rate", "data = data - learning_rate", "write to data itself"),
    ("adam_update", "m *= beta_1", "m = m * beta_1", "write to m itself"),
    (
        "adam_update",
        "m *= beta_1",
        "data, m, v = data.copy(), m.copy(), v.copy()",
        "changed nothing",
    ),
    ("adam_update", "data -= learning_rate", "data += learning_rate", "goes against the gradient"),
    ("gradient_norm", "np.sqrt(grad @ grad)", "grad @ grad", "the root of the sum"),
    ("clip_scale", "1.0 if norm <= max_norm else max_norm / norm", "max_norm / norm", "is 1"),
    ("clip_scale", "max_norm / norm", "norm / max_norm", "it makes the norm max_norm"),
    ("noam", "min(", "max(", "the smaller of the two counts"),
    ("noam", "-1.5", "-0.5", "it is the smaller of step^−½ and step · w^−1.5"),
    ("linear_decay", "max(0.0, min(step / warmup_steps, falling))", "min(step, falling)", "linear"),
    ("linear_decay", "max(0.0, ", "max(-1.0, ", "never below 0"),
    ("linear_decay", "total_steps - warmup_steps", "total_steps", "peak at the end of the warm-up"),
    ("greedy", "ended.all()", "ended.any()", "go on until all rows have ended"),
    ("greedy", " and not ended.all()", "", "at 9 all had ended"),
    ("greedy", "said.shape[1] <= max_length and ", "", "more than max_length=3"),
    ("greedy", "return said[:, 1:]", "return said", "without the start symbol"),
    ("greedy", "argmax", "argmin", "the one of the highest log P"),
    ("beam_search", "h[1] / ((5 + len(h[0])) / 6) ** alpha", "h[1]", "not by log P alone"),
    ("beam_search", "(5 + len(h[0]))", "(4 + len(h[0]))", "counts EOS"),
    ("beam_search", "(5 + len(h[0])) / 6", "len(h[0])", "the penalty is ((5 + length) / 6)^α"),
    (
        "beam_search",
        "rank(found) + rank(_hypotheses(said, total))",
        "rank(found + _hypotheses(said, total))",
        "comes after all that has",
    ),
    (
        "beam_search",
        "rank(found) + rank(_hypotheses(said, total))",
        "rank(found)",
        "is returned, too",
    ),
    (
        "beam_search",
        "axis=None)[:beam_size]",
        "axis=None)[: beam_size - len(found)]",
        "however many",
    ),
    ("beam_search", "said, total = said[~ended], total[~ended]", "pass", "leaves the beam"),
    (
        "beam_search",
        "while len(said)",
        "while len(found) < beam_size and len(said)",
        "may score higher",
    ),
    ("beam_search", "total[:, None] + log", "log", "the sum of log P of all its tokens"),
    ("beam_search", "best = best[log_p.ravel()[best] > -np.inf]", "pass", "has log P = −∞"),
    ("beam_search", "(said, total)))[:beam_size]", "(said, total)))", "at most beam_size"),
    ("_hypotheses", "ids[1:]", "ids", "without the start symbol"),
    ("_hypotheses", "ids[1:]", "ids[(ids != 2) & (ids != 3)]", "EOS stays where it was chosen"),
]


@pytest.mark.parametrize(("function", "old", "new", "says"), SLIPS)
def test_a_slip_is_told_what_it_is(function, old, new, says):
    part = PART_OF.get(function, PART_OF["beam_search"])  # whose helper it is
    changed = solution_with((function, old, new))
    alone = {name: changed[name] for name in part.functions}  # the others are to do
    (verdict,) = (v for v in check_exercise("own", alone).verdicts if v.part == part)
    assert verdict.status == WRONG
    assert says in verdict.explanation


def test_there_is_a_slip_for_each_function():
    assert {function for function, *_ in SLIPS} >= PART_OF.keys()


def called_by(function):
    """The functions of the solution that a function calls by their names."""
    nodes = ast.walk(ast.parse(DEFINITIONS[function]))
    return {node.id for node in nodes if isinstance(node, ast.Name)} & DEFINITIONS.keys()


def needed_by(function):
    """A function, and all that it calls, directly or not."""
    needed, more = set(), {function}
    while more:
        needed |= more
        more = set().union(*map(called_by, more)) - needed
    return needed


@pytest.mark.parametrize("function", ["linear", "softmax", "layer_norm", "dropout", "split_heads"])
def test_a_slip_makes_no_part_wrong_but_those_that_call_it(function):
    slip = next((f, old, new) for f, old, new, _ in SLIPS if f == function)
    callers = {
        part.functions[0]
        for part in PARTS
        if any(function in needed_by(name) for name in part.functions)
    }
    assert PART_OF[function].functions[0] in wrong_parts(solution_with(slip)) <= callers


def test_slips_in_many_functions_at_once_make_no_other_part_wrong():
    nobody_calls = {
        function: part.functions[0]
        for function, part in PART_OF.items()
        if not any(function in called_by(other) for other in DEFINITIONS)
    }
    slips = {f: (f, old, new) for f, old, new, _ in reversed(SLIPS) if f in nobody_calls}
    assert len(slips) > 10
    assert wrong_parts(solution_with(*slips.values())) == {nobody_calls[f] for f in slips}


OTHERWISE = """
def linear(x, weight, bias=None):
    y = np.einsum("...i,ij->...j", x, weight)
    return y + (0 if bias is None else bias), [x, weight]


def linear_backward(dy, cache):
    x, weight = cache
    rows = tuple(range(x.ndim - 1))
    return [dy @ weight.T, np.tensordot(x, dy, (rows, rows)), dy.sum(axis=rows)]


def relu(x):
    return x * (x > 0), {"x": x}


def relu_backward(dy, cache):
    return np.where(cache["x"] > 0, dy, 0)


def softmax(x, mask=None):
    allowed = np.ones(x.shape) if mask is None else np.broadcast_to(mask, x.shape) * 1.0
    e = np.exp(np.where(allowed, x - np.where(allowed, x, -1e300).max(-1, keepdims=True), 0))
    w = np.nan_to_num(e * allowed / (e * allowed).sum(-1, keepdims=True))
    return w, w


def softmax_backward(dw, w):
    jacobian = w[..., :, None] * (np.eye(w.shape[-1]) - w[..., None, :])
    return (jacobian @ dw[..., None])[..., 0]


def cross_entropy(logits, targets, smoothing=0.0, pad_id=0, num_tokens=None):
    z = logits - logits.max(-1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(-1, keepdims=True))
    one_hot = np.eye(z.shape[-1])[targets]
    real = (targets != pad_id)[..., None] / (num_tokens or max(1, (targets != pad_id).sum()))
    q = (1 - smoothing) * one_hot + smoothing / z.shape[-1]
    return (-(real * q * log_p).sum(), -(real * one_hot * log_p).sum()), (log_p, q, real)


def cross_entropy_backward(dloss, cache):
    log_p, q, real = cache
    return dloss * real * (np.exp(log_p) - q)


def embedding_backward(dx, cache):
    ids, weight, scale = cache
    one_hot = np.eye(len(weight))[ids.ravel()]
    return scale * one_hot.T @ dx.reshape(-1, dx.shape[-1])


def sinusoidal_encoding(length, d_model):
    table = np.zeros((length, d_model))
    for i in range(0, d_model, 2):
        angle = np.arange(length) / 10000 ** (i / d_model)
        table[:, i], table[:, i + 1] = np.sin(angle), np.cos(angle)
    return table


def layer_norm(x, gamma, beta, epsilon=1e-5):
    x_hat = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon)
    return gamma * x_hat + beta, (x, gamma, epsilon)


def layer_norm_backward(dy, cache):
    x, gamma, epsilon = cache
    centred, n = x - x.mean(-1, keepdims=True), x.shape[-1]
    sigma = np.sqrt(x.var(-1, keepdims=True) + epsilon)
    dsigma = -(dy * gamma * centred).sum(-1, keepdims=True) / sigma**2
    dcentred = dy * gamma / sigma + dsigma * centred / (n * sigma)
    dgamma = (dy * centred / sigma).reshape(-1, n).sum(0)
    return dcentred - dcentred.mean(-1, keepdims=True), dgamma, dy.reshape(-1, n).sum(0)


def causal_mask(ids):
    return np.tril(np.ones((1, 1, ids.shape[1], ids.shape[1]), dtype=bool))


def split_heads(x, num_heads):
    return np.stack(np.split(x, num_heads, axis=-1), axis=1)


def merge_heads(x):
    return np.concatenate([x[:, h] for h in range(x.shape[1])], axis=-1)


def dropout(x, p=0.0, rng=None):
    factor = np.ones(x.shape)
    if rng is not None and p > 0:
        factor = (rng.random(x.shape, dtype=np.float32) >= p) / (1 - p)
    return x * factor, factor


def dropout_backward(dy, factor):
    return dy * factor


def encoder_layer_backward(dy, cache):
    return [list(d) if isinstance(d, tuple) else d for d in first_encoder_layer_backward(dy, cache)]


def adam_update(data, grad, m, v, learning_rate, t, beta_1, beta_2, epsilon, scale=1.0):
    m[:] = beta_1 * m + (1 - beta_1) * grad * scale
    v[:] = beta_2 * v + (1 - beta_2) * (grad * scale) ** 2
    root = np.sqrt(v / (1 - beta_2**t))
    np.subtract(data, learning_rate / (1 - beta_1**t) * m / (root + epsilon), out=data)


def gradient_norm(grad):
    return math.sqrt(sum(float(g) ** 2 for g in grad))


def clip_scale(norm, max_norm):
    return min(1, max_norm / max(norm, 1e-30))


def linear_decay(step, peak, warmup_steps, total_steps):
    return np.interp(step, [0, warmup_steps, total_steps], [0, peak, 0])


def greedy(log_probabilities, said, max_length):
    rows = [[int(bos)] for (bos,) in said]
    for _ in range(max_length):
        for row, of_next in zip(rows, log_probabilities(np.array(rows))):
            row.append(EOS if EOS in row else int(np.argmax(of_next)))
        if all(EOS in row for row in rows):
            break
    return np.array(rows)[:, 1:]


def beam_search(log_probabilities, said, max_length, beam_size, alpha):
    penalty = lambda length: ((5 + length) / 6) ** alpha
    beam, found = [(0.0, [int(said[0, 0])])], []
    for length in range(1, max_length + 1):
        of_next = log_probabilities(np.array([ids for _, ids in beam]))
        longer = [
            (total + log_p, [*ids, word])
            for (total, ids), row in zip(beam, of_next)
            for word, log_p in enumerate(row)
            if log_p > -np.inf
        ]
        best = sorted(longer, reverse=True)[:beam_size]
        found += [(p / penalty(length), p, ids) for p, ids in best if ids[-1] == EOS]
        found = sorted(found, reverse=True)[:beam_size]
        beam = [(p, ids) for p, ids in best if ids[-1] != EOS]
        if not beam or len(found) == beam_size and beam[0][0] / penalty(max_length) < found[-1][0]:
            return [(np.array(ids[1:]), p) for _, p, ids in found]
    return [(ids[1:], p) for _, p, ids in found] + [(ids[1:], p) for p, ids in beam][
        : beam_size - len(found)
    ]
"""


def test_right_answers_that_are_written_otherwise_are_right():
    functions = solution_with()
    functions["first_encoder_layer_backward"] = functions["encoder_layer_backward"]
    exec(OTHERWISE, functions)
    assert wrong_parts(functions) == set()
