"""Solutions of lesson 02, backpropagation by hand."""

import numpy as np


def residual_chain_slope(slopes):
    """Each block has the slope 1 + s_k, and along the chain they multiply.

    Multiply the product out and there are the 2ⁿ paths: from each bracket either 1, past the block,
    or s_k, through it.
    """
    return np.prod([1 + slope for slope in slopes])


def gram(x):
    return x @ x.T, x


def gram_backward(dy, cache):
    """Δy = Δx xᵀ + x Δxᵀ. ⟨dy, Δx xᵀ⟩ = ⟨dy x, Δx⟩, and ⟨dy, x Δxᵀ⟩ = ⟨dyᵀ, Δx xᵀ⟩ = ⟨dyᵀ x, Δx⟩.

    One gradient for each place in which x stands, and their sum.
    """
    x = cache
    return (dy + dy.T) @ x


def two_layer_network(x, w_1, b_1, w_2, b_2):
    z = x @ w_1 + b_1  # (B, T, F)
    h = np.maximum(z, 0)
    y = x + h @ w_2 + b_2  # (B, T, D)
    return y, (x, w_1, z, h, w_2)


def two_layer_network_backward(dy, cache):
    """Two arrows leave x: past the network, with the slope 1, and through it."""
    x, w_1, z, h, w_2 = cache
    d_model, d_ff = w_1.shape
    dy_rows = dy.reshape(-1, d_model)  # (B T, D)
    dw_2 = h.reshape(-1, d_ff).T @ dy_rows
    db_2 = dy_rows.sum(axis=0)
    dh = dy @ w_2.T  # (B, T, F)
    dz = dh * (z > 0)
    dz_rows = dz.reshape(-1, d_ff)  # (B T, F)
    dw_1 = x.reshape(-1, d_model).T @ dz_rows
    db_1 = dz_rows.sum(axis=0)
    dx = dy + dz @ w_1.T
    return dx, dw_1, db_1, dw_2, db_2


def gradients_of(tape, dy):
    """In reverse, each gradient is complete when its name comes up as an output.

    ``a + b`` makes a new array; ``a += b`` would change one that a backward may have handed to two
    names. A call whose output has no gradient had no influence, and is passed over.
    """
    gradients = {tape[-1][0]: dy}
    for output, inputs, backward, cache in reversed(tape):
        if output not in gradients:
            continue
        for name, gradient in zip(inputs, backward(gradients[output], cache), strict=True):
            gradients[name] = gradients[name] + gradient if name in gradients else gradient
    return gradients
