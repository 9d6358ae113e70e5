"""Every layer and the whole model, as inputs small enough to check each entry of.

The sizes differ from one another, so that a diagnosis can tell them apart. Where a feed-forward
network is involved its ReLUs are kept away from their kinks by construction: all |x W_1| < 0.9 and
b_1 = ±1 (:func:`away_from_kinks`), so that a central difference never crosses one.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from minitransformer.core.backend import array_namespace
from minitransformer.core.module import Module
from minitransformer.data.text.batches import Batch
from minitransformer.gradcheck.check import check_pair
from minitransformer.gradcheck.modules import module_pair, moved_from_start
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
from minitransformer.layers.embedding import Embedding, OutputProjection, embedding_weight
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
from minitransformer.layers.residual import ResidualConnection
from minitransformer.layers.restricted_attention import (
    RestrictedSelfAttention,
    restricted_attention,
    restricted_attention_backward,
)
from minitransformer.layers.sigmoid import sigmoid, sigmoid_backward
from minitransformer.layers.softmax import softmax, softmax_backward
from minitransformer.loss.consistency import consistency, consistency_backward
from minitransformer.loss.cross_entropy import cross_entropy, cross_entropy_backward
from minitransformer.loss.projected_loss import projected_loss, projected_loss_backward
from minitransformer.models.convolutional_translator import ConvolutionalTranslatorConfig
from minitransformer.models.language_model import LanguageModelConfig
from minitransformer.models.masked_language_model import MaskedLanguageModelConfig
from minitransformer.models.recurrent_translator import RecurrentTranslatorConfig
from minitransformer.models.registry import new_model
from minitransformer.models.restricted_transformer import RestrictedTransformerConfig
from minitransformer.models.stacks import DecoderLayer, EncoderLayer
from minitransformer.models.tagger import TaggerConfig
from minitransformer.models.transformer_config import TransformerConfig

B, T, S, D, H, K, F, V = 3, 4, 5, 6, 2, 3, 7, 11
SOURCE = np.array([[4, 7, 2, 9, 5], [3, 8, 7, 0, 0], [6, 1, 0, 0, 0]])  # (B, S), 0 is padding
TARGET = np.array([[1, 5, 9, 3], [1, 4, 4, 0], [1, 7, 0, 0]])  # (B, T)
LABELS = np.array([[5, 9, 3, 2], [4, 4, 2, 0], [7, 2, 0, 0]])  # (B, T)
BATCH = Batch(SOURCE, TARGET, LABELS)
SOURCE_MASK = padding_mask(SOURCE)  # (B, 1, 1, S)
TARGET_MASK = causal_mask(TARGET) & padding_mask(TARGET)  # (B, 1, T, T)
LONG = 9  # positions, more than a window covers
LONG_TOKENS = np.arange(LONG) < np.array([9, 5, 1])[:, None]  # (B, LONG), False at padding
LONG_MASK = LONG_TOKENS[:, None, None, :]  # (B, 1, 1, LONG)
NOTHING_ALLOWED = SOURCE_MASK & (np.arange(B) != 1)[:, None, None, None]  # no key for sentence 1
SOME_TOKENS = np.array([[1, 1, 1, 1], [0, 1, 1, 0], [0, 0, 0, 0]], dtype=bool)  # (B, T)


@dataclass(frozen=True)
class Case:
    """One row of the table: what to check and on which inputs.

    Attributes:
        name: layer, then what is special about it.
        build: from a NumPy generator, the (forward, backward, inputs, names) of a pair.
        directions: as for :func:`check_pair`.
        tolerance: largest relative error called right.
    """

    name: str
    build: Callable
    directions: int | None = None
    tolerance: float = 1e-7

    def check(self, seed=0):
        """Check this case; returns a Report."""
        forward, backward, inputs, names = self.build(np.random.default_rng(seed))
        return check_pair(
            forward,
            backward,
            inputs,
            names=names,
            directions=self.directions,
            tolerance=self.tolerance,
            seed=seed,
        )


class HostGenerator:
    """Random numbers drawn on the host and copied: the same dropout mask on every device."""

    def __init__(self, xp, seed=0):
        self.xp = xp
        self.host = np.random.default_rng(seed)

    def random(self, shape, dtype):
        return self.xp.asarray(self.host.random(shape, dtype=dtype))

    def integers(self, high, size, dtype):
        return self.xp.asarray(self.host.integers(high, size=size, dtype=dtype))


class ResidualLinear(Module):
    """A residual connection around the simplest sublayer there is."""

    def __init__(self, rng, norm):
        self.residual = ResidualConnection(D, norm=norm, p=0.3)
        self.linear = Linear(D, D, rng)

    def forward(self, x):
        h, enter_cache = self.residual.enter(x)
        h, linear_cache = self.linear.forward(h)
        y, leave_cache = self.residual.leave(x, h, HostGenerator(array_namespace(x)))
        return y, (enter_cache, linear_cache, leave_cache)

    def backward(self, dy, cache):
        enter_cache, linear_cache, leave_cache = cache
        dx, dh = self.residual.leave_backward(dy, leave_cache)
        dh = self.linear.backward(dh, linear_cache)
        return dx + self.residual.enter_backward(dh, enter_cache)


class SelfAttention(Module):
    """Multi-head attention of a sequence to itself."""

    def __init__(self, rng, attention=None):
        self.attention = attention or MultiHeadAttention(D, H, rng)

    def forward(self, x, mask=None):
        return self.attention.forward(x, x, x, mask)

    def backward(self, dy, cache):
        return sum(self.attention.backward(dy, cache))


class UsedTwice(Module):
    """One layer at two places: both caches must survive and both gradients add up."""

    def __init__(self):
        self.norm = LayerNorm(D)

    def forward(self, x):
        h, first_cache = self.norm.forward(x)
        y, second_cache = self.norm.forward(h * h)
        return y, (h, first_cache, second_cache)

    def backward(self, dy, cache):
        h, first_cache, second_cache = cache
        dh = self.norm.backward(dy, second_cache) * 2 * h
        return self.norm.backward(dh, first_cache)


class StatesAndLast(Module):
    """A recurrent layer with all its outputs as one: the last state follows, step after step."""

    def __init__(self, layer):
        self.layer = layer

    def forward(self, x, h, c, mask):
        state = [s for s in (h, c) if s is not None]
        (y, *last), cache = self.layer.forward(x, *state, mask=mask)
        together = array_namespace(x).concatenate([y, *(s[:, None] for s in last)], axis=1)
        return together, (y.shape[1], cache)  # (B, T + 1 or T + 2, D)

    def backward(self, dy, cache):
        length, cache = cache
        last = [dy[:, t] for t in range(length, dy.shape[1])]
        return self.layer.backward((dy[:, :length], *last), cache)


class TiedEmbedding(Module):
    """Embedding and output projection sharing one weight."""

    def __init__(self, rng):
        self.embedding = Embedding(embedding_weight(V, D, rng))
        self.projection = OutputProjection(self.embedding.weight)

    def forward(self, ids):
        x, embedding_cache = self.embedding.forward(ids)
        logits, projection_cache = self.projection.forward(x)
        return logits, (embedding_cache, projection_cache)

    def backward(self, dlogits, cache):
        embedding_cache, projection_cache = cache
        dx = self.projection.backward(dlogits, projection_cache)
        self.embedding.backward(dx, embedding_cache)


class ModelLoss(Module):
    """The training loss of a whole model with dropout, as one function of its parameters."""

    def __init__(self, model, smoothing=0.1):
        self.model = model
        self.smoothing = smoothing

    def forward(self, *ids_and_labels):
        *ids, labels = ids_and_labels
        generator = HostGenerator(self.model.device.xp)
        logits, model_cache = self.model.logits(*ids, rng=generator)
        (loss, _), loss_cache = cross_entropy(logits, labels, self.smoothing)
        return loss, (model_cache, loss_cache)

    def backward(self, dloss, cache):
        model_cache, loss_cache = cache
        dlogits = cross_entropy_backward(dloss, loss_cache)
        self.model.backward(dlogits, model_cache)


def away_from_kinks(module):
    """Give every FeedForward below ``module`` b_1 = ±1 and a W_1 too small to reach the kink.

    By Cauchy and Schwarz |x w| ≤ |x| |w|. The columns of W_1 get length 0.9 / (5 √D); inputs here
    are standard normal draws or outputs of a LayerNorm with gains below 1.5 and shifts below 0.5,
    and no row of either is longer than 5 √D.
    """
    for _, layer in module.named_modules():
        if isinstance(layer, FeedForward):
            d_model, d_ff = layer.w_1.data.shape
            length = np.sqrt((layer.w_1.data**2).sum(axis=0))
            layer.w_1.data = layer.w_1.data * (0.9 / (5 * np.sqrt(d_model)) / length)
            layer.b_1.data = np.where(np.arange(d_ff) % 3, 1.0, -1.0)
    return module


def small_config(norm="post", tying="three-way"):
    return TransformerConfig(
        source_vocabulary_size=V if tying == "three-way" else V + 2,
        target_vocabulary_size=V,
        d_model=D,
        num_heads=H,
        d_ff=F,
        num_encoder_layers=2,
        num_decoder_layers=2,
        dropout=0.2,
        attention_dropout=0.2,
        feed_forward_dropout=0.2,
        norm=norm,
        tying=tying,
        max_length=8,
    )


def small_restricted_config():
    return RestrictedTransformerConfig(**vars(small_config("pre")), window=1)


def small_convolution_config():
    return ConvolutionalTranslatorConfig(
        source_vocabulary_size=V,
        target_vocabulary_size=V,
        d_model=D,
        num_encoder_layers=2,
        num_decoder_layers=2,
        dropout=0.2,
        max_length=8,
    )


def small_language_model_config(norm="pre", kind=LanguageModelConfig, **fields):
    return kind(
        vocabulary_size=V,
        d_model=D,
        num_heads=H,
        d_ff=F,
        num_layers=2,
        dropout=0.2,
        attention_dropout=0.2,
        feed_forward_dropout=0.2,
        norm=norm,
        max_length=T,
        **fields,
    )


def small_tagger_config(norm="pre"):
    labels = " ".join(f"label-{i}" for i in range(1, LABELS.max() + 1))
    return small_language_model_config(norm, TaggerConfig, labels=labels)


def small_recurrent_config(attention):
    return RecurrentTranslatorConfig(
        source_vocabulary_size=V,
        target_vocabulary_size=V,
        d_model=D,
        d_hidden=F,
        attention=attention,
        dropout=0.2,
        max_length=8,
    )


def _drawn(rng, inputs):
    return tuple(rng.standard_normal(x) if isinstance(x, tuple) else x for x in inputs)


def _pair(forward, backward, names, *inputs):
    """Build a pair; each input is a shape to draw from a normal distribution or is passed on."""
    return lambda rng: (forward, backward, _drawn(rng, inputs), names)


def _module(make, *inputs):
    """Build the module ``make(rng)`` as a pair; inputs as for :func:`_pair`."""
    return lambda rng: module_pair(
        away_from_kinks(moved_from_start(make(rng), rng)), _drawn(rng, inputs)
    )


def _attention(mask=None, p=0.0):
    def forward(query, key, value, mask):
        generator = HostGenerator(array_namespace(query))
        return scaled_dot_product_attention(query, key, value, mask, p, generator)

    names = ("query", "key", "value", "mask")
    shapes = ((B, H, T, K), (B, H, S, K), (B, H, S, K))
    return _pair(forward, scaled_dot_product_attention_backward, names, *shapes, mask)


def _relu(rng):
    x = rng.standard_normal((B, T, D))
    return relu, relu_backward, (x + 0.1 * np.sign(x),), ("x",)  # none within 0.1 of the kink


def _dropout(x):
    return dropout(x, 0.3, HostGenerator(array_namespace(x)))


def _loss(smoothing):
    def forward(logits, targets):
        (loss, _), cache = cross_entropy(logits, targets, smoothing)
        return loss, cache

    return _pair(forward, cross_entropy_backward, ("logits", "targets"), (B, T, V), LABELS)


def _projected_loss(kappa, *shape):
    def forward(x, weight, targets):
        (loss, _), cache = projected_loss(x, weight, targets, smoothing=0.1, kappa=kappa)
        return loss, cache

    names = ("x", "weight", "targets")
    return _pair(forward, projected_loss_backward, names, shape, (V, D), LABELS)


def _recurrent(make, *state, mask=SOME_TOKENS):
    state = (*state, None, None)[:2]
    return _module(lambda rng: StatesAndLast(make(rng)), (B, T, D), *state, mask)


def _model(config, *ids):
    def make(rng):
        return ModelLoss(new_model(config, seed=int(rng.integers(1000))))

    return _module(make, *(ids or (SOURCE, TARGET)), LABELS)


def _multi_head(rng):
    return MultiHeadAttention(D, H, rng)


def _convolution(width=3, mask=None, **options):
    return _module(lambda rng: Convolution1d(D, F, width, rng, **options), (B, LONG, D), mask)


def _restricted(window, causal=False, mask=LONG_MASK, p=0.0):
    def forward(query, key, value, mask):
        generator = HostGenerator(array_namespace(query))
        return restricted_attention(query, key, value, H, window, causal, mask, p, generator)

    names = ("query", "key", "value", "mask")
    return _pair(forward, restricted_attention_backward, names, *3 * ((B, LONG, D),), mask)


def _restricted_self(rng):
    return SelfAttention(rng, RestrictedSelfAttention(D, H, 2, rng))


CASES = [
    Case("linear", _module(lambda rng: Linear(D, F, rng), (B, T, D))),
    Case("linear, no bias", _module(lambda rng: Linear(D, F, rng, bias=False), (B, T, D))),
    Case("relu", _relu),
    Case("softmax", _pair(softmax, softmax_backward, ("x",), (B, H, T, S))),
    Case(
        "softmax, nothing allowed in some rows",
        _pair(softmax, softmax_backward, ("x", "mask"), (B, H, T, S), NOTHING_ALLOWED),
    ),
    Case("dropout", _pair(_dropout, dropout_backward, ("x",), (B, T, D))),
    Case("layer_norm", _module(lambda rng: LayerNorm(D), (B, T, D))),
    Case("layer_norm, used twice", _module(lambda rng: UsedTwice(), (B, T, D))),
    Case("residual, post-norm", _module(lambda rng: ResidualLinear(rng, "post"), (B, T, D))),
    Case("residual, pre-norm", _module(lambda rng: ResidualLinear(rng, "pre"), (B, T, D))),
    Case("embedding", _module(lambda rng: Embedding(embedding_weight(V, D, rng)), SOURCE)),
    Case("embedding, tied to the projection", _module(TiedEmbedding, SOURCE)),
    Case(
        "positional_encoding",
        _pair(
            lambda x: positional_encoding(
                x, array_namespace(x).asarray(sinusoidal_encoding(8, D), dtype=x.dtype)
            ),
            positional_encoding_backward,
            ("x",),
            (B, T, D),
        ),
    ),
    Case("attention", _attention()),
    Case("attention, padding mask", _attention(SOURCE_MASK)),
    Case("attention, nothing allowed in some rows", _attention(NOTHING_ALLOWED)),
    Case("attention, dropout", _attention(SOURCE_MASK, p=0.3)),
    Case(
        "attention, multi-head self, causal and padding mask",
        _module(SelfAttention, (B, T, D), TARGET_MASK),
    ),
    Case(
        "attention, multi-head cross, padding mask",
        _module(_multi_head, (B, T, D), (B, S, D), (B, S, D), SOURCE_MASK),
    ),
    Case("sigmoid", _pair(sigmoid, sigmoid_backward, ("x",), (B, T, D))),
    Case("elman", _recurrent(lambda rng: Elman(D, K, rng), (B, K), mask=None)),
    Case("elman, padding at both ends", _recurrent(lambda rng: Elman(D, K, rng), (B, K))),
    Case("gru", _recurrent(lambda rng: GRU(D, K, rng), (B, K), mask=None)),
    Case("gru, padding at both ends", _recurrent(lambda rng: GRU(D, K, rng), (B, K))),
    Case(
        "gru, from the end", _recurrent(lambda rng: GRU(D, K, rng, reverse=True), (B, K), mask=None)
    ),
    Case("lstm", _recurrent(lambda rng: LSTM(D, K, rng), (B, K), (B, K), mask=None)),
    Case("lstm, padding at both ends", _recurrent(lambda rng: LSTM(D, K, rng), (B, K), (B, K))),
    Case(
        "bidirectional gru, padding at both ends",
        _recurrent(lambda rng: Bidirectional(GRU, D, K, rng)),
    ),
    Case(
        "bidirectional lstm, padding at both ends",
        _recurrent(lambda rng: Bidirectional(LSTM, D, K, rng)),
    ),
    Case(
        "additive_attention",
        _module(lambda rng: AdditiveAttention(D, F, K, rng), (B, T, D), (B, S, F), (B, S, H), None),
    ),
    Case(
        "additive_attention, nothing allowed in some rows",
        _module(
            lambda rng: AdditiveAttention(D, F, K, rng),
            (B, T, D),
            (B, S, F),
            (B, S, H),
            NOTHING_ALLOWED[:, 0],
        ),
    ),
    Case("restricted_attention", _restricted(2, mask=None)),
    Case("restricted_attention, nothing allowed in some rows", _restricted(2)),
    Case("restricted_attention, causal, padding mask", _restricted(2, causal=True)),
    Case("restricted_attention, one block", _restricted(4)),
    Case("restricted_attention, dropout", _restricted(2, p=0.3)),
    Case(
        "restricted_attention, multi-head self, padding mask",
        _module(_restricted_self, (B, LONG, D), LONG_MASK),
    ),
    Case("convolution", _convolution()),
    Case("convolution, padding mask", _convolution(mask=LONG_TOKENS)),
    Case("convolution, causal", _convolution(width=4, causal=True)),
    Case(
        "convolution, causal, dilation, padding mask",
        _convolution(dilation=2, causal=True, mask=LONG_TOKENS),
    ),
    Case("convolution, window longer than the sequence", _convolution(width=5, dilation=3)),
    Case(
        "gated_linear_unit",
        _pair(gated_linear_unit, gated_linear_unit_backward, ("x",), (B, T, 2 * D)),
    ),
    Case("learned_positions", _module(lambda rng: LearnedPositions(8, D, rng), (B, T, D))),
    Case("feed_forward", _module(lambda rng: FeedForward(D, F, rng), (B, T, D))),
    Case("loss", _loss(0.0)),
    Case("loss, label smoothing", _loss(0.1)),
    Case(
        "consistency",
        _pair(consistency, consistency_backward, ("logits", "targets"), (2 * B, T, V), LABELS),
    ),
    Case("projected_loss", _projected_loss(0.0, B, T, D)),
    Case("projected_loss, two passes", _projected_loss(2.0, 2 * B, T, D)),
    *(
        case
        for norm in ("post", "pre")
        for case in (
            Case(
                f"encoder_layer, {norm}-norm",
                _module(
                    lambda rng, n=norm: EncoderLayer(small_config(n), rng), (B, S, D), SOURCE_MASK
                ),
            ),
            Case(
                f"decoder_layer, {norm}-norm",
                _module(
                    lambda rng, n=norm: DecoderLayer(small_config(n), rng),
                    (B, T, D),
                    (B, S, D),
                    TARGET_MASK,
                    SOURCE_MASK,
                ),
            ),
            *(
                Case(
                    f"model, {norm}-norm, {tying} tying", _model(small_config(norm, tying)), 3, 1e-6
                )
                for tying in ("three-way", "two-way", "none")
            ),
        )
    ),
    Case("model, restricted", _model(small_restricted_config()), 3, 1e-6),
    Case("model, convolution", _model(small_convolution_config()), 3),
    Case("model, recurrent, additive attention", _model(small_recurrent_config("additive")), 3),
    Case("model, recurrent, fixed vector", _model(small_recurrent_config("none")), 3),
    *(
        Case(
            f"model, {kind.kind.replace('-', ' ')}",
            _model(small_language_model_config(kind=kind), TARGET),
            3,
            1e-6,
        )
        for kind in (LanguageModelConfig, MaskedLanguageModelConfig)
    ),
    Case("model, tagger", _model(small_tagger_config(), TARGET), 3, 1e-6),
]
