"""What a learner's functions stand in for: the package's functions, by the names in the file."""

from minitransformer.decoding import beam_search, greedy
from minitransformer.layers import (
    attention,
    dropout,
    embedding,
    feed_forward,
    layer_norm,
    linear,
    masks,
    positional_encoding,
    relu,
    residual,
    softmax,
)
from minitransformer.loss import cross_entropy
from minitransformer.models.stacks import DecoderLayer, EncoderLayer
from minitransformer.optim import adam, clipping, schedule

# Called in the learner's file as in the package: these may take the place of what is not written.
CALLED_ALIKE = {
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
