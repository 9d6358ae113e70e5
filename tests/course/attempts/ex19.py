AT_PADDING = "at padding the state stays what it was"
VALUES = "np.abs(z + (1 - z) * np.asarray(eigenvalues))"

WRONG = """
reach
    np.zeros -> np.ones || dy must be 0 before the last step
    return shape[1] - 1 -> return shape[1] || is 0 for the last step itself
gated_norm
    $VALUES -> (z + (1 - z) * np.abs(eigenvalues)) || the sign of λ counts
    np.abs( -> ( || take | | before the maximum
    $VALUES.max() ** k -> z**k || the gate's path is not the only one
    ** k -> || its k-th power
    $VALUES -> np.abs(eigenvalues) || z I + (1 − z) U
coupled_cell
    [o * shown, f * c + (1 - f) * g] -> [f * c + (1 - f) * g, o * shown] || with h first
    tanh(f * c + (1 - f) * g) -> tanh(f * c + g) && f * c + (1 - f) * g] -> f * c + g]
        || the input gate is 1 − f
    (c - g) -> c || WRONG  da || right  dc  # as in an LSTM: f stands twice
    = dc_new + dh -> = dh || the second half of dstate, is left out
one_gate
    np.where(mask[:, t, None], f * h + (1 - f) * n, h) -> f * h + (1 - f) * n || $AT_PADDING
    * mask[:, :, None] -> || y is not 0 at padding
    + da @ w_hidden.T -> || what is carried from step to step through
    dh + dy[:, t], 0) -> dy[:, t], 0) || step to step
"""
