"""How many floating point operations a training step has, counted from its shapes.

A product of (m, k) by (k, n) is 2 m k n operations: m k n multiplications and as many additions.
Only matrix products are counted, all else being a few operations an entry, and only for tokens
that are there: padding is no work that anybody wants done. The multiplications of a forward pass
are, for sentences with s source and t target tokens each,

    encoder layer     Σ s (4 D² + 2 D F)                    four projections, feed-forward network
    decoder layer     Σ t (6 D² + 2 D F) + Σ s 2 D²         the last: keys and values of the memory
    attention         Σ 2 s² D,  Σ 2 t² D,  Σ 2 s t D       scores and weighted values, of each kind
    logits            Σ t D V

The backward pass has two products, one for each factor, where the forward pass has one. So a step
has six operations for each of these multiplications.
"""


def step_flops(config, source_lengths, target_lengths):
    """Operations of forward and backward, as a dict by kind of work.

    Args:
        config: TransformerConfig.
        source_lengths, target_lengths: tokens of each sentence, end symbol included; (B,) arrays.
    """
    D, F, V = config.d_model, config.d_ff, config.target_vocabulary_size
    s, t = source_lengths, target_lengths
    encoders, decoders = config.num_encoder_layers, config.num_decoder_layers
    encoder = s.sum() * (4 * D * D + 2 * D * F)
    decoder = t.sum() * (6 * D * D + 2 * D * F) + s.sum() * 2 * D * D
    encoder_attention = (s * s).sum() * 2 * D
    decoder_attention = (t * t + s * t).sum() * 2 * D
    multiplications = {
        "linear": encoders * encoder + decoders * decoder,
        "attention": encoders * encoder_attention + decoders * decoder_attention,
        "logits": t.sum() * D * V,
    }
    return {kind: 6 * int(count) for kind, count in multiplications.items()}


def batch_flops(config, batch):
    """As :func:`step_flops`, for a Batch."""
    lengths = ((ids != config.pad_id).sum(axis=1) for ids in (batch.source, batch.labels))
    return step_flops(config, *lengths)


def gemm_shapes(config, rows):
    """The matrix products that make up nearly all of a step: ``{name: (m, k, n)}``.

    For each kind of map from D_in to D_out, the forward pass and the gradients of input and weight.

    Args:
        rows: positions of one side of a batch.
    """
    D, F, V = config.d_model, config.d_ff, config.target_vocabulary_size
    shapes = {}
    for name, d_in, d_out in (("D x D", D, D), ("D x F", D, F), ("D x V", D, V)):
        shapes[f"{name}, forward"] = rows, d_in, d_out
        shapes[f"{name}, gradient of the input"] = rows, d_out, d_in
        shapes[f"{name}, gradient of the weight"] = d_in, rows, d_out
    return shapes
