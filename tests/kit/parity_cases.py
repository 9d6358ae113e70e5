"""Everything that is compared with PyTorch: one table, ours beside torch's.

A case names its inputs, the module of ours that is given them, and the function of ``torch_twin``
that is given the same. Nothing here imports torch: the twin is handed in where it is there.

Inputs and weights are drawn anew each time, also where torch's results are read from a file. So
they come from the raw bits of a generator, which NumPy promises not to change, and are multiples of
1/256, the same numbers in float32 and in float64.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from minitransformer import Adam, Transformer, cross_entropy, cross_entropy_backward
from minitransformer.cases.case import (
    LABELS,
    LONG,
    LONG_MASK,
    LONG_TOKENS,
    SOURCE,
    SOURCE_MASK,
    TARGET,
    TARGET_MASK,
    B,
    D,
    F,
    H,
    K,
    S,
    T,
    V,
)
from minitransformer.cases.layers import ResidualLinear, SelfAttention, StatesAndLast, TiedEmbedding
from minitransformer.cases.models import (
    small_config,
    small_language_model_config,
    small_tagger_config,
)
from minitransformer.core.module import FlatParameters, Module, Parameter
from minitransformer.layers.additive_attention import AdditiveAttention
from minitransformer.layers.attention import (
    MultiHeadAttention,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)
from minitransformer.layers.bidirectional import Bidirectional
from minitransformer.layers.convolution import Convolution1d
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.elman import Elman
from minitransformer.layers.embedding import Embedding, embedding_weight
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.gated_linear_unit import (
    gated_linear_unit,
    gated_linear_unit_backward,
)
from minitransformer.layers.gru import GRU
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.layers.learned_positions import LearnedPositions
from minitransformer.layers.linear import Linear
from minitransformer.layers.lstm import LSTM
from minitransformer.layers.masks import causal_mask, padding_mask
from minitransformer.layers.positional_encoding import (
    positional_encoding,
    positional_encoding_backward,
    sinusoidal_encoding,
)
from minitransformer.layers.relu import relu, relu_backward
from minitransformer.layers.restricted_attention import (
    RestrictedSelfAttention,
    restricted_attention,
    restricted_attention_backward,
)
from minitransformer.layers.softmax import softmax, softmax_backward
from minitransformer.loss.projected_loss import projected_loss, projected_loss_backward
from minitransformer.models.language_model import LanguageModel
from minitransformer.models.masked_language_model import (
    MaskedLanguageModel,
    MaskedLanguageModelConfig,
)
from minitransformer.models.stacks import Decoder, DecoderLayer, Encoder, EncoderLayer
from minitransformer.models.tagger import Tagger

VECTORS = Path(__file__).parent / "vectors" / "torch.npz"
UPSTREAM = ("dy", "dloss")  # gradients that are given, of the outputs y and loss
SMOOTHING = 0.1
LEARNING_RATE = 1e-3
STEPS = 20
STORE = f"run python {Path(__file__).with_name('make_torch_vectors.py')}, which needs PyTorch"


@dataclass(frozen=True)
class Case:
    """One row of the table.

    Attributes:
        name: layer, then what is special about it.
        make: from a NumPy generator, the module of ours, in any float type.
        twin: from the module ``torch_twin`` and tensors, what torch computes.
        inputs: by name, arrays, or shapes to draw; those in UPSTREAM go to ``backward``.
        arguments: of our forward, from all arrays; by default the inputs in their order.
        tolerances: for each dtype to compare in, the largest relative error of any tensor.
        stored: whether torch's results are in VECTORS, as ``make_torch_vectors.py`` writes them;
            without them they are compared live alone.
    """

    name: str
    make: Callable
    twin: Callable
    inputs: dict
    arguments: Callable | None = None
    tolerances: dict = field(default_factory=lambda: {"float64": 1e-10, "float32": 1e-4})
    stored: bool = True

    def draw(self):
        """The same arrays every time: inputs in ±1, gains in 1 ± ½, all other weights in ±½."""
        bits = np.random.PCG64(0)
        arrays = {
            name: _draw(bits, value) if isinstance(value, tuple) else np.asarray(value)
            for name, value in self.inputs.items()
        }
        for path, parameter in self.make(np.random.default_rng(0)).named_parameters():
            weight = _draw(bits, parameter.data.shape) / 2
            arrays[path] = 1 + weight if path.endswith("gamma") else weight
        return arrays

    def ours(self, arrays, dtype):
        """Our outputs and the gradient of every float input and weight, by name."""
        arrays = {n: x.astype(dtype) if x.dtype.kind == "f" else x for n, x in arrays.items()}
        module = self.make(np.random.default_rng(0)).to(dtype=dtype)
        named = dict(module.named_parameters())
        for path, parameter in named.items():
            parameter.data[...] = arrays[path]
        inputs = {name: arrays[name] for name in self.inputs if name not in UPSTREAM}

        arguments = self.arguments(arrays) if self.arguments else inputs.values()
        outputs, cache = module.forward(*arguments)
        results = dict(outputs) if isinstance(outputs, dict) else {"y": outputs}
        for upstream in UPSTREAM:
            if upstream in arrays:
                dinputs = module.backward(arrays[upstream], cache)
                dinputs = dinputs if isinstance(dinputs, tuple) else (dinputs,)
                floats = (name for name, x in inputs.items() if x.dtype.kind == "f")
                results |= {f"d{name}": dx for name, dx in zip(floats, dinputs, strict=False)}
                results |= {f"d{path}": parameter.grad for path, parameter in named.items()}
        return results

    def torch(self, twin, arrays, dtype):
        """Torch's results under the same names."""
        return twin.results(lambda t: self.twin(twin, t), arrays, dtype)


def differences(ours, theirs):
    """The relative error of every tensor, max |ours − theirs| / max |theirs|, by name.

    Raises:
        AssertionError: the two sides have not the same tensors, or one of theirs is all zero and
            so could not tell right from missing.
    """
    assert ours.keys() == theirs.keys()
    errors = {}
    for name, expected in theirs.items():
        assert ours[name].shape == expected.shape, name
        assert np.any(expected), f"{name} is all zero"
        errors[name] = float(abs(ours[name] - expected).max() / abs(expected).max())
    return errors


def pack(arrays):
    """A dict of arrays as one structured array, which is one small entry of an .npz file."""
    packed = np.zeros((), [(name, x.dtype, x.shape) for name, x in arrays.items()])
    for name, x in arrays.items():
        packed[name] = x
    return packed


def stored_results(case):
    """What torch computed in float64 when ``make_torch_vectors.py`` was last run."""
    with np.load(VECTORS, allow_pickle=False) as vectors:
        assert case.name in vectors, f"{VECTORS} has nothing for {case.name!r}: {STORE}"
        packed = vectors[case.name]
    return {name: packed[name] for name in packed.dtype.names}


def _draw(bits, shape):
    return (bits.random_raw(shape) % 257).astype(np.float64) / 128 - 1


class Pair(Module):
    """A pair of functions where a module is expected."""

    def __init__(self, forward, backward):
        self.forward = forward
        self.backward = backward


class WithLoss:
    """Of a model: outputs by name, loss included; no dropout, as no generator is given."""

    def forward(self, *ids_and_labels):
        *ids, labels = ids_and_labels
        logits, model_cache = super().forward(*ids)
        (loss, nll), loss_cache = cross_entropy(logits, labels, SMOOTHING)
        return {"logits": logits, "loss": loss, "nll": nll}, (model_cache, loss_cache)

    def backward(self, dloss, cache):
        model_cache, loss_cache = cache
        super().backward(cross_entropy_backward(dloss, loss_cache), model_cache)


class ModelWithLoss(WithLoss, Transformer):
    pass


class LanguageModelWithLoss(WithLoss, LanguageModel):
    pass


class MaskedLanguageModelWithLoss(WithLoss, MaskedLanguageModel):
    pass


class TaggerWithLoss(WithLoss, Tagger):
    pass


class Training(ModelWithLoss):
    """The losses of STEPS steps of Adam that go through the batches in turn."""

    def forward(self, sources, targets, labels):
        adam = Adam(self.flat)
        losses = []
        for step in range(STEPS):
            batch = step % len(sources)
            outputs, cache = super().forward(sources[batch], targets[batch], labels[batch])
            self.zero_grad()
            self.backward(1.0, cache)
            adam.step(LEARNING_RATE)
            losses.append(outputs["loss"])
        return {"losses": np.array(losses)}, None


class AdamSteps(Module):
    """A weight after one step of Adam for each of the gradients given."""

    def __init__(self):
        self.weight = Parameter(np.zeros(D))

    def forward(self, gradients):
        flat = FlatParameters(self)
        adam = Adam(flat)
        for gradient in gradients:
            flat.grad[:] = gradient
            adam.step(LEARNING_RATE)
        return flat.data, None


def _cross_entropy(smoothing):
    def forward(logits, labels):
        (loss, nll), cache = cross_entropy(logits, labels, smoothing)
        return {"loss": loss, "nll": nll}, cache

    return lambda rng: Pair(forward, cross_entropy_backward)


def _projected_loss(x, weight, labels):
    (loss, nll), cache = projected_loss(x, weight, labels, SMOOTHING)
    return {"loss": loss, "nll": nll}, cache


def _dropout_at_inference(rng):
    return Pair(lambda x: dropout(x, 0.3), dropout_backward)


def _residual_without_dropout(rng, norm):
    module = ResidualLinear(rng, norm)
    module.residual.p = 0
    return module


def _positional_encoding(rng):
    def forward(x):
        return positional_encoding(x, sinusoidal_encoding(8, D).astype(x.dtype))

    return Pair(forward, positional_encoding_backward)


def _attention(rng):
    return Pair(scaled_dot_product_attention, scaled_dot_product_attention_backward)


def _restricted_attention(window, causal):
    def forward(query, key, value, mask=None):
        return restricted_attention(query, key, value, H, window, causal, mask)

    return lambda rng: Pair(forward, restricted_attention_backward)


def _convolution(name, width, tokens=None, **options):
    return Case(
        f"convolution, {name}",
        lambda rng: Convolution1d(D, F, width, rng, **options),
        lambda twin, t: twin.convolution(t, **options),
        dict(x=(B, LONG, D), dy=(B, LONG, F)) | ({} if tokens is None else dict(tokens=tokens)),
    )


def _padded_ids(bits, *shape):
    """Ids from 1 on; row i of each batch ends in i times padding."""
    rows, length = shape[-2:]
    real = np.arange(length) < length - np.arange(rows)[:, None]
    return np.where(real, 1 + (bits.random_raw(shape) % (V - 1)).astype(np.int64), 0)


def _batches():
    """Three padded batches: source (3, B, S), target and labels (3, B, T)."""
    bits = np.random.PCG64(1)
    sentences = _padded_ids(bits, 3, B, T + 1)
    return {
        "source": _padded_ids(bits, 3, B, S),
        "target": sentences[..., :-1],
        "labels": sentences[..., 1:],
    }


def _gradients():
    """One for each step; they shrink from entry to entry down to the size of Adam's ε."""
    return _draw(np.random.PCG64(2), (STEPS, D)) * 0.5 ** np.array([0, 10, 20, 26, 29, 32])


def _self_mask(ids):
    return causal_mask(ids) & padding_mask(ids)


def _recurrent():
    """Each recurrent layer over a padded batch, and GRU and LSTM over one without padding."""

    def case(name, make, num_states, directions=1, source=SOURCE):
        state = {part: (B, K) for part in ("h", "c")[:num_states] if directions == 1}
        shown = S + num_states
        return Case(
            name,
            lambda rng: StatesAndLast(make(rng)),
            lambda twin, t: twin.recurrent(t, directions),
            dict(x=(B, S, D), **state, source=source, dy=(B, shown, directions * K)),
            lambda a: (a["x"], a.get("h"), a.get("c"), a["source"] != 0),
        )

    yield case("elman, padding", lambda rng: Elman(D, K, rng), 1)
    for kind, num_states in ((GRU, 1), (LSTM, 2)):
        name = kind.__name__.lower()
        full = np.ones_like(SOURCE)
        yield case(name, lambda rng, kind=kind: kind(D, K, rng), num_states, source=full)
        yield case(f"{name}, padding", lambda rng, kind=kind: kind(D, K, rng), num_states)
        yield case(
            f"bidirectional {name}, padding",
            lambda rng, kind=kind: Bidirectional(kind, D, K, rng),
            num_states,
            directions=2,
        )


def _of_norm(norm):
    """Everything that pre-norm and post-norm make different, for one of them."""
    config = small_config(norm)
    encoded = dict(x=(B, S, D), source=SOURCE, dy=(B, S, D))
    decoded = dict(x=(B, T, D), memory=(B, S, D), target=TARGET, source=SOURCE, dy=(B, T, D))
    batch = dict(source=SOURCE, target=TARGET, labels=LABELS)

    def encoder_arguments(a):
        return a["x"], padding_mask(a["source"])

    def decoder_arguments(a):
        return a["x"], a["memory"], _self_mask(a["target"]), padding_mask(a["source"])

    yield Case(
        f"residual, {norm}-norm",
        lambda rng: _residual_without_dropout(rng, norm),
        lambda twin, t: twin.residual_around_linear(t, norm),
        dict(x=(B, T, D), dy=(B, T, D)),
    )
    yield Case(
        f"encoder layer, {norm}-norm",
        lambda rng: EncoderLayer(config, rng),
        lambda twin, t: twin.encoder_layer(t, norm),
        encoded,
        encoder_arguments,
    )
    yield Case(
        f"decoder layer, {norm}-norm",
        lambda rng: DecoderLayer(config, rng),
        lambda twin, t: twin.decoder_layer(t, norm),
        decoded,
        decoder_arguments,
    )
    yield Case(
        f"encoder, {norm}-norm",
        lambda rng: Encoder(config, config.num_encoder_layers, rng),
        lambda twin, t: twin.encoder(t, norm),
        encoded,
        encoder_arguments,
        stored=False,  # in the whole model they are
    )
    yield Case(
        f"decoder, {norm}-norm",
        lambda rng: Decoder(config, config.num_decoder_layers, rng),
        lambda twin, t: twin.decoder(t, norm),
        decoded,
        decoder_arguments,
        stored=False,  # in the whole model they are
    )
    # Tying has nothing to do with the norm.
    for tying in ("three-way", "two-way", "none") if norm == "pre" else ("three-way",):
        yield Case(
            f"model, {norm}-norm, {tying} tying",
            lambda rng, tying=tying: ModelWithLoss(small_config(norm, tying), dtype=np.float64),
            lambda twin, t: twin.model(t, norm),
            dict(**batch, dloss=0.75),
        )
    yield Case(
        f"language model, {norm}-norm",
        lambda rng: LanguageModelWithLoss(small_language_model_config(norm), dtype=np.float64),
        lambda twin, t: twin.language_model(t, norm),
        dict(ids=TARGET, labels=LABELS, dloss=0.75),
    )
    # Neither mask nor labels have to do with the norm: one is enough where torch is not installed.
    stored, of_norm = (True, "") if norm == "pre" else (False, ", post-norm")
    yield Case(
        f"masked language model{of_norm}",
        lambda rng: MaskedLanguageModelWithLoss(
            small_language_model_config(norm, MaskedLanguageModelConfig), dtype=np.float64
        ),
        lambda twin, t: twin.language_model(t, norm, causal=False),
        dict(ids=TARGET, labels=LABELS, dloss=0.75),
        stored=stored,
    )
    yield Case(
        f"tagger{of_norm}",
        lambda rng: TaggerWithLoss(small_tagger_config(norm), dtype=np.float64),
        lambda twin, t: twin.language_model(t, norm, causal=False),
        dict(ids=TARGET, labels=LABELS, dloss=0.75),
        stored=stored,
    )
    yield Case(
        f"training, {norm}-norm",
        lambda rng: Training(config, dtype=np.float64),
        lambda twin, t: twin.training(t, norm),
        _batches(),
        tolerances={"float64": 1e-6},
    )


CASES = [
    Case(
        "linear",
        lambda rng: Linear(D, F, rng),
        lambda twin, t: twin.linear(t),
        dict(x=(B, T, D), dy=(B, T, F)),
    ),
    Case(
        "linear, no bias",
        lambda rng: Linear(D, F, rng, bias=False),
        lambda twin, t: twin.linear(t),
        dict(x=(B, T, D), dy=(B, T, F)),
    ),
    Case(
        "relu",
        lambda rng: Pair(relu, relu_backward),
        lambda twin, t: twin.relu(t),
        dict(x=(B, T, D), dy=(B, T, D)),
    ),
    Case(
        "softmax",
        lambda rng: Pair(softmax, softmax_backward),
        lambda twin, t: twin.softmax(t),
        dict(x=(B, H, T, S), dy=(B, H, T, S)),
    ),
    Case(
        "softmax, padding mask",
        lambda rng: Pair(softmax, softmax_backward),
        lambda twin, t: twin.softmax(t),
        dict(x=(B, H, T, S), mask=SOURCE_MASK, dy=(B, H, T, S)),
    ),
    Case(
        "dropout, inference",
        _dropout_at_inference,
        lambda twin, t: twin.dropout_at_inference(t),
        dict(x=(B, T, D), dy=(B, T, D)),
    ),
    Case(
        "layer_norm",
        lambda rng: LayerNorm(D),
        lambda twin, t: twin.layer_norm(t),
        dict(x=(B, T, D), dy=(B, T, D)),
    ),
    Case(
        "embedding",
        lambda rng: Embedding(embedding_weight(V, D, rng)),
        lambda twin, t: twin.embedding(t),
        dict(ids=SOURCE, dy=(B, S, D)),
    ),
    Case(
        "embedding, tied to the projection",
        TiedEmbedding,
        lambda twin, t: twin.tied_embedding(t),
        dict(ids=SOURCE, dy=(B, S, V)),
    ),
    Case(
        "positional_encoding",
        _positional_encoding,
        lambda twin, t: twin.positional_encoding(t),
        dict(x=(B, T, D), dy=(B, T, D)),
    ),
    Case(
        "attention",
        _attention,
        lambda twin, t: twin.scaled_dot_product_attention(t),
        dict(query=(B, H, T, K), key=(B, H, S, K), value=(B, H, S, K), dy=(B, H, T, K)),
    ),
    Case(
        "attention, padding mask",
        _attention,
        lambda twin, t: twin.scaled_dot_product_attention(t),
        dict(
            query=(B, H, T, K),
            key=(B, H, S, K),
            value=(B, H, S, K),
            mask=SOURCE_MASK,
            dy=(B, H, T, K),
        ),
    ),
    Case(
        "attention, causal and padding mask",
        _attention,
        lambda twin, t: twin.scaled_dot_product_attention(t),
        dict(
            query=(B, H, T, K),
            key=(B, H, T, K),
            value=(B, H, T, K),
            mask=TARGET_MASK,
            dy=(B, H, T, K),
        ),
    ),
    Case(
        "attention, multi-head self, causal and padding mask",
        lambda rng: SelfAttention(MultiHeadAttention(D, H, rng)),
        lambda twin, t: twin.self_attention(t),
        dict(x=(B, T, D), target=TARGET, dy=(B, T, D)),
        lambda a: (a["x"], _self_mask(a["target"])),
    ),
    Case(
        "attention, multi-head cross, padding mask",
        lambda rng: MultiHeadAttention(D, H, rng),
        lambda twin, t: twin.cross_attention(t),
        dict(query=(B, T, D), key=(B, S, D), value=(B, S, D), source=SOURCE, dy=(B, T, D)),
        lambda a: (a["query"], a["key"], a["value"], padding_mask(a["source"])),
    ),
    *_recurrent(),
    Case(
        "additive_attention, padding mask",
        lambda rng: AdditiveAttention(D, F, K, rng),
        lambda twin, t: twin.additive_attention(t),
        dict(query=(B, T, D), key=(B, S, F), value=(B, S, H), source=SOURCE, dy=(B, T, H)),
        lambda a: (a["query"], a["key"], a["value"], (a["source"] != 0)[:, None]),
    ),
    Case(
        "restricted_attention",
        _restricted_attention(2, causal=False),
        lambda twin, t: twin.restricted_attention(t, 2, causal=False),
        dict.fromkeys(("query", "key", "value", "dy"), (B, LONG, D)),
    ),
    Case(
        "restricted_attention, causal, padding mask",
        _restricted_attention(3, causal=True),
        lambda twin, t: twin.restricted_attention(t, 3, causal=True),
        dict.fromkeys(("query", "key", "value", "dy"), (B, LONG, D)) | dict(mask=LONG_MASK),
    ),
    Case(
        "restricted_attention, multi-head self",
        lambda rng: SelfAttention(RestrictedSelfAttention(D, H, 2, rng)),
        lambda twin, t: twin.restricted_self_attention(t, 2),
        dict(x=(B, LONG, D), dy=(B, LONG, D)),
    ),
    _convolution("centred, dilation, padding mask", 5, LONG_TOKENS, dilation=2),
    _convolution("causal", 4, causal=True),
    _convolution("causal, dilation, padding mask", 3, LONG_TOKENS, dilation=3, causal=True),
    Case(
        "gated_linear_unit",
        lambda rng: Pair(gated_linear_unit, gated_linear_unit_backward),
        lambda twin, t: twin.gated_linear_unit(t),
        dict(x=(B, T, 2 * D), dy=(B, T, D)),
    ),
    Case(
        "learned_positions",
        lambda rng: LearnedPositions(8, D, rng),
        lambda twin, t: twin.learned_positions(t),
        dict(x=(B, T, D), dy=(B, T, D)),
    ),
    Case(
        "feed_forward",
        lambda rng: FeedForward(D, F, rng),
        lambda twin, t: twin.feed_forward(t),
        dict(x=(B, T, D), dy=(B, T, D)),
    ),
    Case(
        "loss",
        _cross_entropy(0.0),
        lambda twin, t: twin.cross_entropy(t, 0.0),
        dict(logits=(B, T, V), labels=LABELS, dloss=0.75),
    ),
    Case(
        "loss, label smoothing",
        _cross_entropy(SMOOTHING),
        lambda twin, t: twin.cross_entropy(t, SMOOTHING),
        dict(logits=(B, T, V), labels=LABELS, dloss=0.75),
    ),
    Case(
        "projected_loss",
        lambda rng: Pair(_projected_loss, projected_loss_backward),
        lambda twin, t: twin.cross_entropy({"logits": t["x"] @ t["weight"].T, **t}, SMOOTHING),
        dict(x=(B, T, D), weight=(V, D), labels=LABELS, dloss=0.75),
    ),
    Case(
        "adam",
        lambda rng: AdamSteps(),
        lambda twin, t: twin.adam(t),
        dict(gradients=_gradients()),
    ),
    *_of_norm("post"),
    *_of_norm("pre"),
]
