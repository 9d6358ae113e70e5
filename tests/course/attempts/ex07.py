WRONG = r"""
dx_when_scaled
    dx / c -> dx || y is the same, and σ is not
    dx / c -> dx / c**2 || y is the same, and σ is not
lean_layer_norm
    (y, sigma, gamma, beta) -> (centred / sigma, sigma, gamma) || array of 120 numbers
rms_norm
    rms = -> x = x - x.mean(axis=-1, keepdims=True)\n    rms = || subtracts no mean
    + EPSILON) -> ) + EPSILON || ; ε belongs inside the root
    - x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True) -> || the path through `x**2` (line
        || is missing
masked_batch_norm
    rows - rows.mean(axis=0) -> rows - x.mean(axis=(0, 1))
        && (centred**2).mean(axis=0) -> x.var(axis=(0, 1)) || those of the valid rows alone
    np.zeros_like(x) -> np.zeros_like(x) + beta || padding
    np.zeros_like(dy) -> dy.copy() || leaks into padding
"""
