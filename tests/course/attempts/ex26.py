MATRICES = "return w_query, w_key, w_value"
PAIRS = "k[..., :, None] * value[..., None, :]"

WRONG = r"""
recall_weights
    * np.sqrt(keys) * (np.log(length) + 10) -> || the other words share the rest
    * np.sqrt(keys) -> || the other words share the rest
    return -> w_key[keys * values :] = 2 * np.eye(keys)\n    return || the question looks at itself
    np.eye(keys) -> np.roll(np.eye(keys), 1, axis=1) || has the largest weight
    pair % values] = 1 -> pair % values] = 2 || its row of w_value must be 1
    $MATRICES -> return w_query * 1e308, w_key * 1e308, w_value || not finite
    $MATRICES -> return w_query, w_key || w_query, w_key and w_value
    $MATRICES -> return w_query, w_key, w_key || they have (30, 6), (30, 6), (30, 6)
linear_attention
    np.cumsum($PAIRS, axis=2) -> ($PAIRS).sum(axis=2, keepdims=True)
        && np.cumsum(k, axis=2) -> k.sum(axis=2, keepdims=True) || position t sees s ≤ t alone
    [..., 0, :] / total -> [..., 0, :] || the sum of the weights
    (q[..., None, :] @ pairs)[..., 0, :] -> np.tril(q @ k.swapaxes(-1, -2)) @ value
        || as much as T² numbers
    / total -> / total / np.sqrt(query.shape[-1]) || there is no √K here
    \n    du -> \n    np.ones((dy.shape[2], dy.shape[2]))\n    du || linear_attention_backward holds
    dtotal = -(dy * y) -> dtotal = -0 * (dy * y) || WRONG  dquery || WRONG  dkey || right  dvalue
        || `(q * sums).sum(axis=-1, keepdims=True)` || is missing
_from_the_end
    np.flip(np.cumsum(np.flip(x, axis=2), axis=2), axis=2) -> np.cumsum(x, axis=2)
        || begin at the end, at T
"""
