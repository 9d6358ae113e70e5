PRODUCTS = "scores and average T · S · K a head"

WRONG = """
multiplications
    2 * S * d_model**2 -> 2 * T * d_model**2 || $PRODUCTS  # right for T = S
    2 * T * S * d_model -> 2 * T * S * d_model * num_heads || $PRODUCTS
    2 * T * S * d_model -> T * S * d_model || $PRODUCTS  # without the average
reordered_heads
    w_output[places] -> w_output[:, places] || a head owns rows
    w_query[:, places], w_key -> w_query[:, :1], w_key || w_query has the shape (12, 1)
    np.asarray(order) -> np.argsort(order) || what was head order[h]
gated_heads
    merge_heads(gates[:, None, None] * heads)
        -> (gates[:, None, None] * heads).reshape(len(heads), heads.shape[2], -1) || h · K + k
    gates[:, None, None] * dgated -> dgated || the factor `gates[:, None, None]`
multi_query_attention
    attention(q, k, v) -> attention(q, k / np.sqrt(3), v) || √ of K, not of D
"""
