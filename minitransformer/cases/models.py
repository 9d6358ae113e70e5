"""Whole models of text, with the training loss as their output, and their larger parts."""

from dataclasses import replace

from minitransformer.cases.case import (
    LABELS,
    SOURCE,
    SOURCE_MASK,
    TARGET,
    TARGET_MASK,
    B,
    Case,
    D,
    F,
    H,
    HostGenerator,
    S,
    T,
    V,
    module,
)
from minitransformer.core.module import Module
from minitransformer.loss.cross_entropy import NO_PADDING, cross_entropy, cross_entropy_backward
from minitransformer.models.convolutional_translator import ConvolutionalTranslatorConfig
from minitransformer.models.language_model_config import LanguageModelConfig
from minitransformer.models.masked_language_model import MaskedLanguageModelConfig
from minitransformer.models.recurrent_translator import RecurrentTranslatorConfig
from minitransformer.models.registry import new_model
from minitransformer.models.restricted_transformer import RestrictedTransformerConfig
from minitransformer.models.stacks import DecoderLayer, EncoderLayer
from minitransformer.models.sublayers import ActivatedFeedForward, GatedFeedForward
from minitransformer.models.tagger import TaggerConfig
from minitransformer.models.transformer_config import TransformerConfig


class ModelLoss(Module):
    """The training loss of a whole model with dropout, as one function of its parameters."""

    def __init__(self, model):
        self.model = model

    def forward(self, *inputs_and_labels):
        *inputs, labels = inputs_and_labels
        generator = HostGenerator(self.model.device.xp)
        logits, model_cache = self.model.logits(*inputs, rng=generator)
        pad_id = getattr(self.model.config, "pad_id", NO_PADDING)
        (loss, _), loss_cache = cross_entropy(logits, labels, 0.1, pad_id)
        return loss, (model_cache, loss_cache)

    def backward(self, dloss, cache):
        model_cache, loss_cache = cache
        dlogits = cross_entropy_backward(dloss, loss_cache)
        return self.model.backward(dlogits, model_cache)


OF_TRANSLATORS = dict(
    source_vocabulary_size=V, target_vocabulary_size=V, d_model=D, dropout=0.2, max_length=8
)
OF_STACKS = dict(num_encoder_layers=2, num_decoder_layers=2)
OF_LAYERS = dict(num_heads=H, d_ff=F, attention_dropout=0.2, feed_forward_dropout=0.2)


def small_config(norm="post", tying="three-way"):
    sizes = OF_TRANSLATORS | OF_STACKS | OF_LAYERS | dict(norm=norm, tying=tying)
    if tying != "three-way":
        sizes["source_vocabulary_size"] = V + 2
    return TransformerConfig(**sizes)


def small_restricted_config():
    return RestrictedTransformerConfig(**vars(small_config("pre")), window=1)


def small_convolution_config():
    return ConvolutionalTranslatorConfig(**OF_TRANSLATORS, **OF_STACKS)


def small_recurrent_config(attention):
    return RecurrentTranslatorConfig(**OF_TRANSLATORS, d_hidden=F, attention=attention)


def small_language_model_config(norm="pre", kind=LanguageModelConfig, **fields):
    fields |= dict(d_model=D, num_layers=2, dropout=0.2, norm=norm, max_length=T)
    return kind(vocabulary_size=V, **OF_LAYERS, **fields)


def since_2017_config():
    """Other blocks than the paper's, as most published models have them."""
    return LanguageModelConfig(
        vocabulary_size=V,
        d_model=8,
        num_heads=4,
        num_groups=2,
        d_ff=F,
        num_layers=2,
        max_length=T,
        normalisation="rms-norm",
        positions="rotary",
        activation="swiglu",
        bias="none",
        scaled_embedding=False,
    )


def small_tagger_config(norm="pre"):
    labels = " ".join(f"label-{i}" for i in range(1, LABELS.max() + 1))
    return small_language_model_config(norm, TaggerConfig, labels=labels)


def whole(config, *inputs_and_labels, of=ModelLoss):
    """Build the loss of a new model; inputs as for :func:`pair`, or those of a translator."""

    def make(rng):
        return of(new_model(config, seed=int(rng.integers(1000))))

    return module(make, *(inputs_and_labels or (SOURCE, TARGET, LABELS)))


MODELS = [
    Case(
        "activated_feed_forward",
        module(
            lambda rng: ActivatedFeedForward(
                small_language_model_config(activation="gelu-by-tanh"), rng
            ),
            (B, T, D),
        ),
    ),
    Case(
        "gated_feed_forward",
        module(lambda rng: GatedFeedForward(since_2017_config(), rng), (B, T, 8)),
    ),
    *(
        case
        for norm in ("post", "pre")
        for case in (
            Case(
                f"encoder_layer, {norm}-norm",
                module(
                    lambda rng, n=norm: EncoderLayer(small_config(n), rng), (B, S, D), SOURCE_MASK
                ),
            ),
            Case(
                f"decoder_layer, {norm}-norm",
                module(
                    lambda rng, n=norm: DecoderLayer(small_config(n), rng),
                    (B, T, D),
                    (B, S, D),
                    TARGET_MASK,
                    SOURCE_MASK,
                ),
            ),
            *(
                Case(
                    f"model, {norm}-norm, {tying} tying", whole(small_config(norm, tying)), 3, 1e-6
                )
                for tying in ("three-way", "two-way", "none")
            ),
        )
    ),
    Case("model, restricted", whole(small_restricted_config()), 3, 1e-6),
    Case("model, convolution", whole(small_convolution_config()), 3),
    Case("model, recurrent, additive attention", whole(small_recurrent_config("additive")), 3),
    Case("model, recurrent, fixed vector", whole(small_recurrent_config("none")), 3),
    *(
        Case(
            f"model, {kind.kind.replace('-', ' ')}",
            whole(small_language_model_config(kind=kind), TARGET, LABELS),
            3,
            1e-6,
        )
        for kind in (LanguageModelConfig, MaskedLanguageModelConfig)
    ),
    Case("model, blocks since 2017", whole(since_2017_config(), TARGET, LABELS), 3),
    Case("model, adapters", whole(replace(since_2017_config(), lora=2), TARGET, LABELS), 3),
    Case("model, tagger", whole(small_tagger_config(), TARGET, LABELS), 3, 1e-6),
]
