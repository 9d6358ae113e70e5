"""The learner's own Transformer, ``lessons/exercises/own.py``: how each of its parts is checked."""

from minitransformer.course.exercises.own.attention import (
    check_causal_mask,
    check_merge_heads,
    check_multi_head_attention,
    check_padding_mask,
    check_scaled_dot_product_attention,
    check_split_heads,
)
from minitransformer.course.exercises.own.blocks import check_decoder_layer, check_encoder_layer
from minitransformer.course.exercises.own.layers import (
    check_dropout,
    check_embedding,
    check_feed_forward,
    check_layer_norm,
    check_linear,
    check_positional_encoding,
    check_relu,
    check_residual,
)
from minitransformer.course.exercises.own.learning import (
    check_adam_update,
    check_clip_scale,
    check_noam,
)
from minitransformer.course.exercises.own.probabilities import check_cross_entropy, check_softmax
from minitransformer.course.exercises.own.search import check_beam_search, check_greedy
from minitransformer.course.exercises.parts import Part


def _pair(name, minutes, check, lesson):
    return Part((name, f"{name}_backward"), minutes, check, lesson)


PARTS = [  # in the order of the lessons that derive them
    _pair("linear", 25, check_linear, "02"),
    _pair("relu", 10, check_relu, "02"),
    _pair("softmax", 25, check_softmax, "04"),
    _pair("cross_entropy", 45, check_cross_entropy, "04"),
    _pair("embedding", 25, check_embedding, "05"),
    Part(
        ("positional_encoding", "sinusoidal_encoding", "positional_encoding_backward"),
        25,
        check_positional_encoding,
        "06",
    ),
    _pair("layer_norm", 45, check_layer_norm, "07"),
    Part(("padding_mask",), 10, check_padding_mask, "08"),
    Part(("causal_mask",), 10, check_causal_mask, "08"),
    _pair("scaled_dot_product_attention", 45, check_scaled_dot_product_attention, "08"),
    Part(("split_heads",), 10, check_split_heads, "09"),
    Part(("merge_heads",), 10, check_merge_heads, "09"),
    _pair("multi_head_attention", 45, check_multi_head_attention, "09"),
    _pair("residual", 10, check_residual, "10"),
    _pair("feed_forward", 25, check_feed_forward, "11"),
    _pair("encoder_layer", 45, check_encoder_layer, "11"),
    _pair("decoder_layer", 45, check_decoder_layer, "11"),
    _pair("dropout", 25, check_dropout, "12"),
    Part(("adam_update",), 25, check_adam_update, "12"),
    Part(("noam", "linear_decay"), 10, check_noam, "12"),
    Part(("clip_scale", "gradient_norm"), 10, check_clip_scale, "13"),
    Part(("greedy",), 25, check_greedy, "14"),
    Part(("beam_search",), 45, check_beam_search, "14"),
]
