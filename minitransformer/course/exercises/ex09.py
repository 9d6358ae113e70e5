"""Exercise 09, many heads: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import Part, expect, read_only, y_and_cache
from minitransformer.gradcheck import CheckError, check_pair
from minitransformer.gradcheck.pair import call
from minitransformer.layers.attention import multi_head_attention, multi_head_attention_weights

B, T, H, K = 2, 5, 3, 4
D = H * K
ORDER = (2, 0, 1)  # not its own inverse


def check_multiplications(multiplications):
    hint = "query and output take T · D², key and value S · D², scores and average T · S · K a head"
    for T, S, d_model, num_heads in ((7, 5, 12, 3), (30, 30, 512, 8), (4000, 4000, 512, 1)):
        expected = 2 * (T + S) * d_model**2 + 2 * T * S * d_model
        count = call("multiplications", multiplications, T, S, d_model, num_heads)
        what = f"multiplications({T}, {S}, {d_model}, {num_heads})"
        expect(what, count, expected, hint=hint)


def check_reordered_heads(reordered_heads):
    x, *weights = _inputs()
    result = call("reordered_heads", reordered_heads, *map(read_only, weights), H, ORDER)
    if not isinstance(result, tuple | list) or len(result) != 4:
        raise CheckError("reordered_heads must return four matrices")
    for name, matrix in zip(("w_query", "w_key", "w_value", "w_output"), result, strict=True):
        if np.shape(matrix) != (D, D):
            raise CheckError(f"{name} has the shape {np.shape(matrix)} and should have {(D, D)}")
    y, cache = multi_head_attention(x, x, x, *weights, H)
    y_reordered, cache_reordered = multi_head_attention(x, x, x, *result, H)
    hint = "at place h there shall be what was head order[h]"
    expect(
        "the attention of the heads",
        multi_head_attention_weights(cache_reordered),
        multi_head_attention_weights(cache)[:, ORDER],
        1e-9,
        hint,
    )
    hint = "do values and output matrix follow? In one of the four a head owns rows"
    expect("y with the heads reordered", y_reordered, y, hint=hint)


def check_gated_heads(forward, backward):
    rng = np.random.default_rng(9)
    heads, gates = rng.standard_normal((B, H, T, K)), rng.uniform(0.5, 1.5, H)
    w_output = rng.standard_normal((D, D))
    y, _ = y_and_cache("gated_heads", forward, heads, gates, w_output)
    expected = sum(
        gates[h] * heads[:, h] @ w_output[h * K : (h + 1) * K] for h in range(H)
    )  # (B, T, D)
    expect("y", y, expected, hint="feature k of head h is number h · K + k of the merged ones")
    return check_pair(
        forward, backward, (heads, gates, w_output), names=("heads", "gates", "w_output")
    )


def check_multi_query_attention(forward, backward):
    x, w_query, _, _, w_output = _inputs()
    w_key, w_value = np.random.default_rng(90).standard_normal((2, D, K)) / np.sqrt(D)
    inputs = x, w_query, w_key, w_value, w_output, H
    y, _ = y_and_cache("multi_query_attention", forward, *inputs)
    repeated = (np.tile(w, (1, H)) for w in (w_key, w_value))  # the same key for each head
    expected, _ = multi_head_attention(x, x, x, w_query, *repeated, w_output, H)
    expect(
        "y", y, expected, hint="one key and one value a position, for all heads; √ of K, not of D"
    )
    names = ("x", "w_query", "w_key", "w_value", "w_output", "num_heads")
    return check_pair(forward, backward, inputs, names=names)


def _inputs():
    """x and the four matrices of multi_head_attention."""
    rng = np.random.default_rng(9)
    return rng.standard_normal((B, T, D)), *(rng.standard_normal((4, D, D)) / np.sqrt(D))


PARTS = [
    Part(("multiplications",), 10, check_multiplications),
    Part(("reordered_heads",), 25, check_reordered_heads),
    Part(("gated_heads", "gated_heads_backward"), 45, check_gated_heads),
    Part(
        ("multi_query_attention", "multi_query_attention_backward"), 90, check_multi_query_attention
    ),
]
