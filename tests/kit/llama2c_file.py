"""Files as llama2.c writes them, of small models that are made up here."""

import struct

import numpy as np

from minitransformer.models.language_model import LanguageModel
from minitransformer.models.language_model_config import LanguageModelConfig

SPECIAL = [b"<unk>", b"\n<s>\n", b"\n</s>\n", *(b"<0x%02X>" % b for b in range(256))]
PIECES = [b" ", b"a", b"b", b"c", b"ab", b"bc", b" a", b" ab", "é".encode(), b"  "]
SCORES = [-1, -2, -3, -4, -7, -6, -9, -8, -5, -10]
ALL, ALL_SCORES = (*SPECIAL, *PIECES), (*[0.0] * len(SPECIAL), *map(float, SCORES))


def small_model(**changes):
    """A LanguageModel of the kind that llama2.c has, away from its first weights."""
    sizes = dict(vocabulary_size=len(ALL), d_model=8, d_ff=12, num_layers=2, max_length=16)
    sizes |= dict(num_heads=4, num_groups=2, dropout=0.0, scaled_embedding=False)
    blocks = dict(normalisation="rms-norm", positions="rotary", activation="swiglu", bias="none")
    config = LanguageModelConfig(**sizes | blocks | changes)
    model = LanguageModel(config, seed=5)
    drawn = np.random.default_rng(5).standard_normal(model.flat.data.size)
    model.flat.data += 0.3 * drawn.astype(np.float32)
    return model


def model_file(model):
    """The bytes of it."""
    config, p = model.config, {name: x.data for name, x in model.named_parameters()}
    tied = config.tying == "two-way"
    header = config.d_model, config.d_ff, config.num_layers, config.num_heads
    header = *header, config.num_key_groups, config.vocabulary_size * (1 if tied else -1)
    head_width = config.d_model // config.num_heads
    arrays = [p["embedding.weight"]]
    for name in (
        *("self_attention_residual.norm.gamma", "self_attention.query.weight"),
        *("self_attention.key.weight", "self_attention.value.weight"),
        *("self_attention.output.weight", "feed_forward_residual.norm.gamma"),
        *("feed_forward.w_gate", "feed_forward.w_down", "feed_forward.w_up"),
    ):
        arrays += [p[f"stack.layers.{i}.{name}"].T for i in range(config.num_layers)]
    arrays += [p["stack.norm.gamma"], np.full((2, config.max_length, head_width // 2), 7.0)]
    arrays += [] if tied else [p["output_projection.weight"]]
    content = b"".join(np.ascontiguousarray(x, "<f4").tobytes() for x in arrays)
    return struct.pack("<7i", *header, config.max_length) + content


def vocabulary_file(pieces=ALL, scores=ALL_SCORES):
    """The bytes of it."""
    each = (struct.pack("<fi", s, len(p)) + p for p, s in zip(pieces, scores, strict=True))
    return struct.pack("<i", max(map(len, pieces))) + b"".join(each)
