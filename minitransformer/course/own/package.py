"""What a learner's functions stand in for: the package's functions, by the names in the file."""

from minitransformer.course.exercises import parts_of
from minitransformer.decoding import beam_search, greedy
from minitransformer.layers import (
    attention,
    batch_norm,
    convolution_2d,
    dropout,
    embedding,
    feed_forward,
    grouped_query_attention,
    layer_norm,
    linear,
    masks,
    pooling,
    positional_encoding,
    relu,
    residual,
    rms_norm,
    rotary,
    silu,
    softmax,
    swiglu,
)
from minitransformer.loss import cross_entropy
from minitransformer.models.stacks import DecoderLayer, EncoderLayer
from minitransformer.models.sublayers import SelfAttention
from minitransformer.optim import adam, adamw, clipping, schedule, sgd

# What came since 2017: models of the paper's layers have no place for it, and models of such blocks
# none for what is a whole layer of the paper.
SINCE_2017 = {
    name: getattr(module, name)
    for module, names in (
        (rms_norm, ("rms_norm", "rms_norm_backward")),
        (silu, ("silu", "silu_backward")),
        (swiglu, ("swiglu", "swiglu_backward")),
        (rotary, ("rotary_table", "rotary", "rotary_backward")),
        (
            grouped_query_attention,
            ("grouped_query_attention", "grouped_query_attention_backward"),
        ),
        (adamw, ("adamw_update",)),
    )
    for name in names
}
# What networks of pictures are made of, and no model of texts has a place for. The package's
# convolution can do more than the learner's, which knows neither dilation nor groups.
PICTURES = {
    name: getattr(module, name)
    for module, names in (
        (convolution_2d, ("convolution_2d", "convolution_2d_backward")),
        (pooling, ("max_pooling", "max_pooling_backward")),
        (batch_norm, ("batch_norm", "batch_norm_backward")),
        (sgd, ("momentum_update",)),
    )
    for name in names
}
SECOND = SINCE_2017 | PICTURES  # the second part of the file
# Called in the learner's file as in the package: these may take the place of what is not written.
CALLED_ALIKE = SECOND | {
    name: getattr(module, name)
    for module, names in (
        (linear, ("linear", "linear_backward")),
        (relu, ("relu", "relu_backward")),
        (softmax, ("softmax", "softmax_backward")),
        (cross_entropy, ("cross_entropy", "cross_entropy_backward")),
        (embedding, ("embedding", "embedding_backward")),
        (positional_encoding, ("sinusoidal_encoding",)),
        (positional_encoding, ("positional_encoding", "positional_encoding_backward")),
        (layer_norm, ("layer_norm", "layer_norm_backward")),
        (masks, ("padding_mask", "causal_mask")),
        (
            attention,
            (
                "scaled_dot_product_attention",
                "scaled_dot_product_attention_backward",
                "split_heads",
                "merge_heads",
                "multi_head_attention",
                "multi_head_attention_backward",
            ),
        ),
        (residual, ("residual", "residual_backward")),
        (feed_forward, ("feed_forward", "feed_forward_backward")),
        (dropout, ("dropout", "dropout_backward")),
        (adam, ("adam_update",)),
        (clipping, ("clip_scale", "gradient_norm")),
        (schedule, ("noam", "linear_decay")),
    )
    for name in names
}
FUNCTIONS = CALLED_ALIKE | {
    "encoder_layer": EncoderLayer.forward,
    "encoder_layer_backward": EncoderLayer.backward,
    "decoder_layer": DecoderLayer.forward,
    "decoder_layer_backward": DecoderLayer.backward,
    "greedy": greedy,
    "beam_search": beam_search,
}


STANDS_FOR = {"grouped_query_attention": SelfAttention.forward}  # beside the function of its name
OF_PAPER_LAYERS = "encoder_layer", "decoder_layer", "greedy", "beam_search"


def parts_of_blocks():
    """The parts of ``own`` on which a language model of today's blocks runs."""
    others = {*OF_PAPER_LAYERS, *PICTURES}
    return [part for part in parts_of("own") if part.functions[0] not in others]


def parts_of_the_transformer():
    """The parts of ``own`` on which a training runs: its first part, a whole Transformer."""
    return [part for part in parts_of("own") if part.functions[0] not in SECOND]
