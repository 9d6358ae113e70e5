"""The learner's own Transformer, ``lessons/exercises/own.py``: how each of its parts is checked."""

from minitransformer.course.exercises.own import (
    attention,
    blocks,
    layers,
    learning,
    probabilities,
    search,
)
from minitransformer.course.exercises.parts import Part


def _pair(name, minutes, check, lesson):
    return Part((name, f"{name}_backward"), minutes, check, lesson)


PARTS = [  # in the order of the lessons that derive them
    _pair("linear", 25, layers.check_linear, "02"),
    _pair("relu", 10, layers.check_relu, "02"),
    _pair("softmax", 25, probabilities.check_softmax, "04"),
    _pair("cross_entropy", 45, probabilities.check_cross_entropy, "04"),
    _pair("embedding", 25, layers.check_embedding, "05"),
    Part(
        ("positional_encoding", "sinusoidal_encoding", "positional_encoding_backward"),
        25,
        layers.check_positional_encoding,
        "06",
    ),
    _pair("layer_norm", 45, layers.check_layer_norm, "07"),
    Part(("padding_mask",), 10, attention.check_padding_mask, "08"),
    Part(("causal_mask",), 10, attention.check_causal_mask, "08"),
    _pair("scaled_dot_product_attention", 45, attention.check_scaled_dot_product_attention, "08"),
    Part(("split_heads",), 10, attention.check_split_heads, "09"),
    Part(("merge_heads",), 10, attention.check_merge_heads, "09"),
    _pair("multi_head_attention", 45, attention.check_multi_head_attention, "09"),
    _pair("residual", 10, layers.check_residual, "10"),
    _pair("feed_forward", 25, layers.check_feed_forward, "11"),
    _pair("encoder_layer", 45, blocks.check_encoder_layer, "11"),
    _pair("decoder_layer", 45, blocks.check_decoder_layer, "11"),
    _pair("dropout", 25, layers.check_dropout, "12"),
    Part(("adam_update",), 25, learning.check_adam_update, "12"),
    Part(("noam", "linear_decay"), 10, learning.check_noam, "12"),
    Part(("clip_scale", "gradient_norm"), 10, learning.check_clip_scale, "13"),
    Part(("greedy",), 25, search.check_greedy, "14"),
    Part(("beam_search",), 45, search.check_beam_search, "14"),
]
