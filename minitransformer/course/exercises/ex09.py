"""Exercise 09, many heads: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import expect, expect_pair, part
from minitransformer.gradcheck import CheckError
from minitransformer.layers.attention import multi_head_attention, multi_head_attention_weights

B, T, H, K = 2, 5, 3, 4
D = H * K
ORDER = (2, 0, 1)  # not its own inverse


@part(10)
def check_multiplications(multiplications):
    hint = "query and output take T · D², key and value S · D², scores and average T · S · K a head"
    for arguments in ((7, 5, 12, 3), (30, 30, 512, 8), (4000, 4000, 512, 1)):
        T, S, d_model, _ = arguments
        expected = 2 * (T + S) * d_model**2 + 2 * T * S * d_model
        multiplications.expect(arguments, expected, hint)


@part(25)
def check_reordered_heads(reordered_heads):
    x, *weights = _inputs()
    result = reordered_heads.several(4, "four matrices", *weights, H, ORDER)
    for name, matrix in zip(("w_query", "w_key", "w_value", "w_output"), result, strict=True):
        if np.shape(matrix) != (D, D):
            raise CheckError(f"{name} has the shape {np.shape(matrix)} and should have {(D, D)}")
    y, cache = multi_head_attention(x, x, x, *weights, H)
    y_reordered, cache_reordered = multi_head_attention(x, x, x, *result, H)
    hint = "at place h there shall be what was head order[h]"
    found = multi_head_attention_weights(cache_reordered)
    wanted = multi_head_attention_weights(cache)[:, ORDER]  # (B, H, T, T)
    expect("the attention of the heads", found, wanted, hint)
    hint = "do values and output matrix follow? In one of the four a head owns rows"
    expect("y with the heads reordered", y_reordered, y, hint)


@part(45)
def check_gated_heads(forward, backward):
    rng = np.random.default_rng(9)
    heads, gates = rng.standard_normal((B, H, T, K)), rng.uniform(0.5, 1.5, H)
    w_output = rng.standard_normal((D, D))
    rows = np.split(w_output, H)  # (K, D) each
    expected = sum(gates[h] * heads[:, h] @ rows[h] for h in range(H))  # (B, T, D)
    hint = "feature k of head h is number h · K + k of the merged ones"
    return expect_pair(forward, backward, (heads, gates, w_output), expected, hint)


@part(90)
def check_multi_query_attention(forward, backward):
    x, w_query, _, _, w_output = _inputs()
    w_key, w_value = np.random.default_rng(90).standard_normal((2, D, K)) / np.sqrt(D)
    repeated = (np.tile(w, (1, H)) for w in (w_key, w_value))  # the same key for each head
    expected, _ = multi_head_attention(x, x, x, w_query, *repeated, w_output, H)
    inputs = x, w_query, w_key, w_value, w_output, H
    hint = "one key and one value a position, for all heads; √ of K, not of D"
    return expect_pair(forward, backward, inputs, expected, hint)


def _inputs():
    """x and the four matrices of multi_head_attention."""
    rng = np.random.default_rng(9)
    return rng.standard_normal((B, T, D)), *(rng.standard_normal((4, D, D)) / np.sqrt(D))
