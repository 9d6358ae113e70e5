"""Solutions of lesson 01, the way of a sentence."""


def shapes_in_the_model(B, S, T, D, H, F, V):
    """Weights are (…, who asks, who is asked). Keys belong to those who are asked."""
    return {
        "memory": (B, S, D),
        "inside": (B, S, F),
        "encoder_weights": (B, H, S, S),
        "decoder_weights": (B, H, T, T),
        "cross_weights": (B, H, T, S),
        "cross_keys": (B, H, S, D // H),
        "logits": (B, T, V),
    }


def count_parameters(V, D, F, N):
    """The heads share out the width among them, so their number does not matter.

    Positions have no parameters. For D = 512 and F = 2048 a layer of the encoder is two thirds
    feed-forward network.
    """
    attention = 4 * D * D
    feed_forward = D * F + F + F * D + D
    norm = 2 * D
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    return V * D + N * (encoder_layer + decoder_layer) + 2 * norm
