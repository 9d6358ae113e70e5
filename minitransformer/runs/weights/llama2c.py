"""Weights and vocabularies as llama2.c keeps them: a header and float32 arrays, one after another.

    seven int32: d_model, d_ff, layers, heads, groups of keys and values, vocabulary, length
    embedding (V, D)
    of all layers:  norm (D), W_q (D, D), W_k and W_v (G K, D), W_o (D, D)
                    norm (D), W_gate (F, D), W_down (D, F), W_up (F, D)
    norm (D), two tables of angles (T, K/2), and the output projection (V, D)

A matrix is stored (D_out, D_in), the transpose of ours. A vocabulary above 0 says that the output
projection is the embedding, and none follows. The angles are worked out here, and passed over.
Rotary pairs are neighbours.
"""

import os
import struct

import numpy as np

from minitransformer.core.errors import InputError
from minitransformer.core.regular_file import open_regular, read_regular
from minitransformer.data.text.scored import ScoredVocabulary
from minitransformer.models.language_model_config import LanguageModelConfig
from minitransformer.models.registry import new_model

HEADER = 7
LARGEST = 2**20  # of each size in a header: far more than any model has
LARGEST_VOCABULARY = 10**8  # bytes


def read(path, vocabulary):
    """The LanguageModel in one file and the ScoredVocabulary in another, as the two that follow."""
    model = read_model(path)
    return model, read_vocabulary(vocabulary, model.config.vocabulary_size)


def read_model(path):
    """The LanguageModel in a file.

    Raises:
        InputError: it is no such file, or not all of it.
        OSError: it is no file to be read: see :func:`open_regular`.
    """
    with open_regular(path) as file:
        header = np.fromfile(file, "<i4", HEADER).tolist()
        if len(header) < HEADER:
            raise InputError(f"{path} is no model of llama2.c: it ends within its header")
        config = _config(path, *header)
        tied = header[5] > 0
        shapes = _shapes(config, tied)
        count = sum(int(np.prod(shape, dtype=object)) for _, shape in shapes)
        size = os.fstat(file.fileno()).st_size
        if size != 4 * (HEADER + count):
            raise InputError(
                f"{path} is no model of llama2.c, or not all of it: its header asks for "
                f"{4 * (HEADER + count):,} bytes, and it has {size:,}"
            )
        model = new_model(config, seed=None)
        parameters = dict(model.named_parameters())
        for name, shape in shapes:
            array = np.fromfile(file, "<f4", int(np.prod(shape))).reshape(shape)
            for ours, x in _ours(name, array):
                parameters[ours].data[...] = x
    return model


def read_vocabulary(path, size):
    """The ScoredVocabulary of ``size`` pieces in a file beside a model.

    int32, how long the longest is; then of each piece a float32, its score, an int32, how many
    bytes it has, and these.

    Raises:
        InputError: there are not so many pieces in it.
        OSError: as for :func:`read_model`.
    """
    content = read_regular(path, LARGEST_VOCABULARY)
    pieces, scores, at = [], [], 4
    for _ in range(size):
        if at + 8 <= len(content):
            score, length = struct.unpack_from("<fi", content, at)
            piece = content[at + 8 : at + 8 + max(0, length)]
        if at + 8 > len(content) or len(piece) != length:
            raise InputError(
                f"{path} is no vocabulary of {size} pieces, or not all of it: it ends within piece "
                f"{len(pieces)}"
            )
        pieces.append(piece)
        scores.append(score)
        at += 8 + length
    if at != len(content):
        raise InputError(f"{path} is no vocabulary of {size} pieces: more follows the last one")
    return ScoredVocabulary(pieces, scores)


def _config(path, d_model, d_ff, num_layers, num_heads, num_groups, vocabulary_size, max_length):
    sizes = d_model, d_ff, num_layers, num_heads, num_groups, abs(vocabulary_size), max_length
    if not all(0 < size <= LARGEST for size in sizes):
        raise InputError(
            f"{path} is no model of llama2.c: its header has the sizes {', '.join(map(str, sizes))}"
        )
    try:
        return LanguageModelConfig(
            abs(vocabulary_size),
            d_model,
            d_ff=d_ff,
            num_layers=num_layers,
            num_heads=num_heads,
            num_groups=num_groups,
            max_length=max_length,
            dropout=0.0,
            normalisation="rms-norm",
            positions="rotary",
            activation="swiglu",
            bias="none",
            tying="two-way" if vocabulary_size > 0 else "none",
            scaled_embedding=False,
        )
    except InputError as error:
        raise InputError(f"{path} is of no model that there is here: {error}") from error


def _shapes(config, tied):
    """(name, shape) of each array of a file, in its order; "" for what is passed over."""
    width, inner, layers = config.d_model, config.d_ff, config.num_layers
    head_width = width // config.num_heads
    keys = head_width * config.num_key_groups
    return [
        ("embedding.weight", (config.vocabulary_size, width)),
        ("self_attention_residual.norm.gamma", (layers, width)),
        ("self_attention.query.weight", (layers, width, width)),
        ("self_attention.key.weight", (layers, keys, width)),
        ("self_attention.value.weight", (layers, keys, width)),
        ("self_attention.output.weight", (layers, width, width)),
        ("feed_forward_residual.norm.gamma", (layers, width)),
        ("feed_forward.w_gate", (layers, inner, width)),
        ("feed_forward.w_down", (layers, width, inner)),
        ("feed_forward.w_up", (layers, inner, width)),
        ("stack.norm.gamma", (width,)),
        ("", (2, config.max_length, head_width // 2)),
        *([] if tied else [("output_projection.weight", (config.vocabulary_size, width))]),
    ]


def _ours(name, x):
    """(our name, array) of what a file has under one name: of each layer where it is of all."""
    if name.startswith(("self_attention", "feed_forward")):
        layers = x.swapaxes(1, 2) if x.ndim == 3 else x  # (layers, D_in, D_out)
        return [(f"stack.layers.{i}.{name}", layer) for i, layer in enumerate(layers)]
    return [(name, x)] if name else []
