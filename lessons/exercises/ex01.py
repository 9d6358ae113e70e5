"""Exercises of lesson 01, the way of a sentence. Check yours:  minitransformer check ex01

Shapes: B batch, S source length, T target length, D width, H heads, F inner width of the
feed-forward network, V vocabulary, N layers of the encoder and as many of the decoder.
"""


def shapes_in_the_model(B, S, T, D, H, F, V):
    """25 min. The shapes of seven arrays on the way through the model.

    Args:
        B, S, T, D, H, F, V: sizes as at the head of this file.

    Returns:
        a dict from the name to the shape, a tuple:
            "memory"           the output of the encoder
            "inside"           within a feed-forward network of the encoder, after the ReLU
            "encoder_weights"  attention weights of the encoder's self-attention, all heads
            "decoder_weights"  those of the decoder's self-attention
            "cross_weights"    those of the decoder's cross-attention
            "cross_keys"       keys of the cross-attention, split into heads
            "logits"           the scores of the next word

    Hint: for each attention ask who asks, and who is asked.
    """
    raise NotImplementedError


def count_parameters(V, D, F, N):
    """25 min. How many numbers training changes.

    The model is that of the lesson: one embedding matrix in all three places (source, target,
    output); attention with four matrices and no biases; feed-forward networks with biases; a
    LayerNorm, with its γ and β, before each sublayer, and one more at the end of each stack.

    Args:
        V, D, F, N: sizes as at the head of this file.

    Returns:
        the number of parameters, an integer.

    Hint: count one attention, one feed-forward network and one LayerNorm; then how many of each
    an encoder layer has, and a decoder layer. Does the number of heads matter?
    """
    raise NotImplementedError
