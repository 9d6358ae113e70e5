ROOT = "(np.sqrt(v_hat) + EPSILON)"
FACTORED = "np.outer(rows, columns) / rows.mean()"

WRONG = r"""
warmup_for_peak
    d_model * peak**2 -> d_model**0.5 * peak || is in step w
    1 / (d_model * peak**2) -> (d_model**0.5 * peak) ** (-2 / 3) || is in step w
decayed_adam_update
    m *= BETA_1 -> grad, decay = grad + decay * data, 0\n    m *= BETA_1 || by the gradient alone
    $ROOT + decay * data) -> $ROOT)\n    data *= 1 - learning_rate * decay || before the step
    m / (1 - BETA_1**t), v / (1 - BETA_2**t) -> m, v || what it was before the step
    m *= BETA_1 -> m, v = m.copy(), v.copy()\n    m *= BETA_1 || m after step 1 || changed in place
drop_path
    / (1 - p) -> || mean over many draws
    u >= p -> u < p || mean over many draws
factored_second_moment
    / rows.mean() -> || its row means must be rows
    $FACTORED -> v && squares = -> v = $FACTORED\n    squares = || must be rows  # of the old ones
    squares.mean(axis=1) -> grad.mean(axis=1) ** 2 || rows is
    return rows, columns -> return columns, rows || rows has the shape
"""
