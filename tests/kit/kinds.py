"""Every kind of model as tests try it: one table, small, and with the choices that change much.

A kind new in the registry is in it by itself, and what it promises is a row of ``PROMISES``; a
choice that changes what is called is a row of ``CHOICES``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields

import numpy as np
from bag_of_words import BagOfWordsConfig

from minitransformer.cases.case import B, D, H, V
from minitransformer.core.backend import CPU
from minitransformer.data.images.batches import PictureBatch
from minitransformer.data.text.batches import Batch, LabelledBatch
from minitransformer.data.text.vocabulary import EOS
from minitransformer.models.picture_classifier import PictureConfig
from minitransformer.models.registry import KINDS, config_class, new_model
from minitransformer.models.token_config import TokenConfig

BAG = BagOfWordsConfig.kind
LABELS = "D N V"  # of a tagger
# Long enough for a text of which a window sees a part, and for what a search says.
USUAL = dict(d_model=D, num_heads=H, d_ff=12, d_hidden=7, max_length=40, dropout=0.0)
USUAL |= dict(num_layers=2, num_encoder_layers=2, num_decoder_layers=2, labels=LABELS)
# Of pictures, too: their size, which all kinds take, and fields that make a model small.
USUAL |= dict(height=16, width=20, channels=2, num_classes=5)
USUAL |= dict(depth=8, width_factor=1 / 8, num_features=4)
OF_ONE = {"restricted": dict(window=1)}  # what is usual of one kind alone


@dataclass(frozen=True)
class Row:
    """A kind with some of its choices.

    Attributes:
        kind: in KINDS; see ``known``.
        chosen: fields of its configuration; the others are those of USUAL, if it has them.
    """

    kind: str
    chosen: dict = field(default_factory=dict)

    def __str__(self):
        return " ".join((self.kind, *(f"{name}={value}" for name, value in self.chosen.items())))

    @property
    def task(self):
        return config_of_kind(self.kind).task

    def config(self, words=V, **changes):
        """The configuration, with so many ids, and two more in a source that is not tied."""
        of_kind = config_of_kind(self.kind)
        usual = {f.name: USUAL[f.name] for f in fields(of_kind) if f.name in USUAL}
        usual |= OF_ONE.get(self.kind, {})
        sizes = of_kind.sizes(words)
        if self.task == "translation" and self.chosen.get("tying", "three-way") != "three-way":
            sizes["source_vocabulary_size"] += 2
        return of_kind(**sizes, **(usual | self.chosen | changes))

    def model(self, seed=1, *, words=V, device=CPU, dtype=np.float64):
        """A model with a mind: it says many words, and ends at many lengths or not at all.

        It is away from its first weights, among which gains of 1 hide mistakes.
        """
        model = new_model(self.config(words), seed)
        rng = np.random.default_rng(seed)
        model.flat.data += 0.3 * rng.standard_normal(model.flat.data.size)
        model.output_projection.weight.data[EOS] *= 2
        return model.to(device, dtype)

    def batch(self, seed=0, longest=6):
        """What it learns from: texts of any lengths, drawn anew for each seed."""
        rng = np.random.default_rng(seed)
        ids, said = (_texts(rng, longest) for _ in range(2))
        if self.task == "translation":
            labels = np.where(said, rng.integers(1, V, said.shape), 0)
            return Batch(ids, said, labels, int((labels > 0).sum()))
        most = 1 + len(LABELS.split()) if self.kind == "tagger" else V
        labels = np.where(ids, rng.integers(0, most, ids.shape), 0)
        labels[0, 0] = 1  # there is something to say
        return LabelledBatch.of(ids, labels)


@dataclass(frozen=True)
class PictureRow(Row):
    """A kind of model of pictures with some of its choices."""

    def config(self, **changes):
        of_kind = config_of_kind(self.kind)
        usual = {f.name: USUAL[f.name] for f in fields(of_kind) if f.name in USUAL}
        return of_kind(**usual | self.chosen | changes)

    def model(self, seed=1, *, device=CPU, dtype=np.float64):
        """A model that is away from its first weights, and from its first running statistics."""
        model = new_model(self.config(), seed)
        rng = np.random.default_rng(seed)
        model.flat.data += 0.1 * rng.standard_normal(model.flat.data.size)
        for _, buffer in model.named_buffers():
            buffer.data = buffer.data + rng.uniform(0, 0.4, buffer.data.shape)
        return model.to(device, dtype)

    def batch(self, seed=0):
        """Pictures that are drawn anew for each seed."""
        rng, config = np.random.default_rng(seed), self.config()
        pictures = rng.standard_normal((B, *config.shape)).astype(np.float32)
        return PictureBatch(pictures, rng.integers(0, config.num_classes, B))


@dataclass(frozen=True)
class Promise:
    """What a kind says of itself, as functions of its configuration.

    Attributes:
        drops: of how many arrays a forward drops entries: embeddings, what sublayers return, and
            what linear maps are given.
        back: of tokens, how far back a position sees; to the beginning, unless it says so.
        any_length: whether a sequence may be longer than ``max_length``.
    """

    drops: Callable
    back: Callable = lambda config: config.max_length
    any_length: bool = False


def of_stacks(config):
    return 2 + 2 * config.num_encoder_layers + 3 * config.num_decoder_layers


def of_one_stack(config):
    return 1 + 2 * config.num_layers


def in_window(config):
    return config.num_layers * config.window or config.max_length


PROMISES = {
    "transformer": Promise(of_stacks),
    "restricted": Promise(of_stacks, lambda config: config.num_decoder_layers * config.window),
    "convolution": Promise(
        lambda config: 2 + config.num_encoder_layers + config.num_decoder_layers,
        lambda config: config.num_decoder_layers * (config.kernel_width - 1),
    ),
    "recurrent": Promise(lambda config: 3, any_length=True),
    **dict.fromkeys(
        ("language-model", "masked-language-model", "tagger"), Promise(of_one_stack, in_window)
    ),
    BAG: Promise(lambda config: 1, lambda config: 0, any_length=True),
    "small-network": Promise(lambda config: 1),
    "alexnet": Promise(lambda config: 1 if config.left_out == "hidden" else 2),
    "residual-network": Promise(lambda config: 0),
    "vision-transformer": Promise(of_one_stack),
}


def slope_and_gradient(model, batch, step, **options):
    """How its loss grows in a direction in which no parameter stands still: found, and worked out.

    Found by a step of each parameter to either side; worked out from the gradient, which is left.
    """
    direction = np.random.default_rng(2).choice([-1.0, 1.0], model.flat.data.size)
    start, losses = model.flat.data.copy(), []
    for sign in (1, -1):
        model.flat.data[:] = start + sign * step * direction
        losses.append(model.loss(batch, **options)[0][0])
    model.flat.data[:] = start
    model.zero_grad()
    model.loss_backward(1.0, model.loss(batch, **options)[1])
    return (losses[0] - losses[1]) / (2 * step), model.flat.grad @ direction


class Recorder:
    """A generator that keeps everything and notes what it is asked for."""

    def __init__(self):
        self.shapes = []

    def random(self, shape, dtype):
        self.shapes.append(shape)
        return np.ones(shape, dtype=dtype)


def config_of_kind(kind):
    return BagOfWordsConfig if kind == BAG else config_class(kind)


def known(patch):
    """As by a line in the registry, until the MonkeyPatch ``patch`` takes it back."""
    patch.setitem(KINDS, BAG, "bag_of_words:BagOfWords")


def _texts(rng, longest):
    """Ids (B, T), of which the first row has no padding."""
    lengths = rng.integers(1, longest + 1, B)
    lengths[0] = longest
    real = np.arange(longest) < lengths[:, None]
    return np.where(real, rng.integers(1, V, real.shape), 0)


OF_TOKENS = [kind for kind in KINDS if issubclass(config_class(kind), TokenConfig)]
CHOICES = [
    Row("transformer", dict(norm="post", tying="none", num_encoder_layers=1)),
    Row("transformer", dict(norm="pre", tying="two-way", num_decoder_layers=1)),
    Row("restricted", dict(norm="post", window=2)),
    Row("convolution", dict(kernel_width=1)),
    Row("convolution", dict(kernel_width=5, tying="none", num_decoder_layers=3)),
    Row("recurrent", dict(attention="none", tying="two-way")),
    Row(BAG),
    Row(BAG, dict(num_maps=2, tying="two-way")),
    Row(BAG, dict(num_maps=3, tying="none")),
    Row("language-model", dict(norm="post", num_layers=1)),
    Row("language-model", dict(positions="alibi", window=1, activation="swiglu", bias="all")),
    Row("language-model", dict(positions="none", normalisation="rms-norm", tying="none")),
    Row("masked-language-model", dict(norm="post")),
    Row("masked-language-model", dict(positions="sinusoidal", window=2, num_groups=1)),
    Row("tagger", dict(labels="D N V A")),
]
ROWS = [*map(Row, OF_TOKENS), *CHOICES]
OF_PICTURES = [kind for kind in KINDS if issubclass(config_class(kind), PictureConfig)]
PICTURES = [
    *map(PictureRow, OF_PICTURES),
    PictureRow("small-network", dict(normalisation="layer-norm")),
    PictureRow("alexnet", dict(activation="tanh", towers=1)),
    PictureRow("alexnet", dict(left_out="hidden")),
    PictureRow("alexnet", dict(overlapping=False, response_norm=False)),
    PictureRow("alexnet", dict(form="large", height=67, width=71)),
    PictureRow("residual-network", dict(shortcut="none")),
    PictureRow("residual-network", dict(shortcut="B", block="bottleneck", depth=11)),
    PictureRow("residual-network", dict(shortcut="C", pre_activation=True)),
    PictureRow("residual-network", dict(form="large", depth=18, shortcut="B", width_factor=1 / 32)),
    PictureRow("vision-transformer", dict(norm="post", patch_size=2)),
]
EVERY_ROW = [*ROWS, *PICTURES]
TRANSLATORS = [row for row in ROWS if row.task == "translation"]
