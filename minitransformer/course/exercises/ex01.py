"""Exercise 01, the way of a sentence: how each part is checked."""

from minitransformer.course.exercises.parts import part
from minitransformer.gradcheck import CheckError

WHAT_EACH_IS = {
    "memory": "the encoder gives each source position a row of D numbers",
    "inside": "each row is widened from D to F, and in the encoder there are S of them",
    "encoder_weights": "source positions ask, source positions are asked",
    "decoder_weights": "target positions ask, target positions are asked",
    "cross_weights": "target positions ask, source positions are asked: rows T, columns S",
    "cross_keys": "keys come from the memory, and a head has D / H of the D numbers",
    "logits": "at each target position there is a score for each of V words",
}


@part(25)
def check_shapes_in_the_model(shapes_in_the_model):
    for B, S, T, D, H, F, V in ((2, 9, 10, 64, 4, 256, 1200), (3, 7, 5, 24, 6, 50, 11)):
        expected = {
            "memory": (B, S, D),
            "inside": (B, S, F),
            "encoder_weights": (B, H, S, S),
            "decoder_weights": (B, H, T, T),
            "cross_weights": (B, H, T, S),
            "cross_keys": (B, H, S, D // H),
            "logits": (B, T, V),
        }
        given = shapes_in_the_model(B, S, T, D, H, F, V)
        if not isinstance(given, dict):
            raise CheckError(f"shapes_in_the_model must return a dict, not {type(given).__name__}")
        if missing := [name for name in expected if name not in given]:
            raise CheckError(f"the dict has no {', '.join(missing)}")
        sizes = f"B={B}, S={S}, T={T}, D={D}, H={H}, F={F}, V={V}"
        for name, shape in expected.items():
            if _shape(given[name]) != shape:
                same = sorted(_shape(given[name]) or ()) == sorted(shape)
                order = "these numbers, in another order; " if same else ""
                raise CheckError(
                    f"{name}: you say {given[name]!r} for {sizes}; {order}{WHAT_EACH_IS[name]}"
                )


@part(25)
def check_count_parameters(count_parameters):
    for V, D, F, N in ((1200, 64, 256, 3), (37, 10, 24, 4)):
        attention, feed_forward, norm = 4 * D * D, 2 * D * F + F + D, 2 * D
        expected = V * D + N * (3 * attention + 2 * feed_forward + 5 * norm) + 2 * norm
        too_many = {
            "the embedding matrix is one in three places, count it once": 2 * V * D,
            "the embedding matrix is one in two places or more, count it once": V * D,
            "the embedding matrix is missing": -V * D,
            "the LayerNorm at the end of each stack is missing": -2 * norm,
            "each of the two stacks ends with a LayerNorm": -norm,
            "the LayerNorms are missing, each with γ and β": -2 * norm - N * 5 * norm,
            "a LayerNorm has two parameters for each feature, γ and β": -(2 + 5 * N) * D,
            "the feed-forward networks have biases, F and D of them": -2 * N * (F + D),
            "attention has no biases": 12 * N * D,
            "a decoder layer has two attentions": -N * attention,
            "a decoder layer has a cross-attention too, and its LayerNorm": -N * (attention + norm),
            "a decoder layer has three LayerNorms": -N * norm,
            "an attention has four matrices: there is one for its output too": -3 * N * D * D,
        }
        mistakes = {hint: expected + difference for hint, difference in too_many.items()}
        hint = "count one attention, one feed-forward network, one LayerNorm; then how many of each"
        count_parameters.expect((V, D, F, N), expected, hint, mistakes)


def _shape(given):
    try:
        return tuple(int(n) for n in given)
    except (TypeError, ValueError):
        return None
