"""Trainings and searches in a few lines, in which every function of ``own.py`` has a place."""

import numpy as np

from minitransformer import Adam, Transformer, TransformerConfig
from minitransformer.data.images.batches import PictureBatch
from minitransformer.data.text.batches import LabelledBatch, make_batches
from minitransformer.data.text.characters import CharacterVocabulary
from minitransformer.decoding import beam_search, greedy
from minitransformer.models.language_model import LanguageModel
from minitransformer.models.language_model_config import LanguageModelConfig
from minitransformer.models.masked_language_model import (
    MaskedLanguageModel,
    MaskedLanguageModelConfig,
)
from minitransformer.models.vision_transformer import VisionTransformer, VisionTransformerConfig
from minitransformer.optim.clipping import clip_scale, gradient_norm
from minitransformer.optim.schedule import linear_decay, noam


def tiny_model(norm="pre", seed=0):
    rates = dict.fromkeys(("dropout", "attention_dropout", "feed_forward_dropout"), 0.1)
    sizes = dict(d_model=8, num_heads=2, d_ff=12, num_encoder_layers=2, num_decoder_layers=2)
    return Transformer(TransformerConfig(16, 16, norm=norm, max_length=20, **sizes, **rates), seed)


def batch():
    rng = np.random.default_rng(4)
    pairs = [tuple(rng.integers(4, 16, n).tolist() for n in (5, 4)) for _ in range(6)]
    return make_batches(pairs, 400)[0]


def windows():
    ids = np.random.default_rng(0).integers(4, 9, (3, 9)).astype(np.int32)
    return LabelledBatch.of(ids[:, :-1], ids[:, 1:])


def half_of_one(model_class, config_class):
    """A function from norm to a model that is half of a Transformer, and its data."""
    sizes = dict(d_model=8, num_heads=2, d_ff=12, num_layers=2, max_length=8)
    return lambda norm: (model_class(config_class(len(LETTERS), norm=norm, **sizes)), windows())


def of_pictures(norm):
    """A Vision Transformer, and its data."""
    sizes = dict(d_model=8, num_heads=2, d_ff=12, num_layers=2, patch_size=2)
    model = VisionTransformer(VisionTransformerConfig(4, 6, 1, 5, norm=norm, **sizes))
    pictures = np.random.default_rng(0).standard_normal((3, 4, 6, 1)).astype(np.float32)
    return model, PictureBatch(pictures, np.array([4, 0, 2]))


LETTERS = CharacterVocabulary.train(["abcde"])
MODELS = {
    "transformer": lambda norm: (tiny_model(norm), batch()),
    "language model": half_of_one(LanguageModel, LanguageModelConfig),
    "masked language model": half_of_one(MaskedLanguageModel, MaskedLanguageModelConfig),
    "vision transformer": of_pictures,
}
OF_TRANSLATORS = {"decoder_layer", "greedy", "beam_search"}
# And half of one learns its positions.
OF_HALVES = {*OF_TRANSLATORS, "decoder_layer_backward", "sinusoidal_encoding"}
UNUSED = {
    "transformer": set(),
    "language model": OF_HALVES,
    "masked language model": {*OF_HALVES, "causal_mask"},
    "vision transformer": {
        *OF_HALVES,
        "causal_mask",
        "padding_mask",
        "embedding",
        "embedding_backward",
    },
}


def train(steps, norm="pre", kind="transformer"):
    """The losses, their gradients, which add up, and what two searches of a translator find."""
    model, data = MODELS[kind](norm)
    adam, losses, grads = Adam(model.flat), [], []
    for step in range(1, steps + 1):
        (loss, _), cache = model.loss(data, np.random.default_rng(step), smoothing=0.1)
        model.loss_backward(1.0, cache)
        losses.append(float(loss))
        grads.append(model.flat.grad.copy())
        scale = clip_scale(gradient_norm(model.flat.grad), 1.0)
        adam.step(linear_decay(step, 1e-2, 3, 50) + 0 * noam(step, 8, 3), scale)
    found = []
    if kind == "transformer":
        best = beam_search(model, data.source[:2], n_best=2)
        found = [h.ids for h in [*greedy(model, data.source[:2]), *best[0], *best[1]]]
    return losses, grads, found
