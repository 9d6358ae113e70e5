WRONG = """
branch_scale
    (growth ** (1 / num_blocks) - 1) / v -> np.log(growth) / (num_blocks * v)
        || its square  # right only for many blocks
    (growth ** (1 / num_blocks) - 1) / v -> (growth - 1) / (num_blocks * v)
        || its square  # the growth of pre-norm
gated_residual
    x + alpha * h -> x + h || z for alpha = 0.7 is
reversible_block
    (y1) -> (x1) || which f has corrected already
    + g_backward(dy2, g_cache) -> || the input of g as well
    f_backward(dy1, -> f_backward(dy1 - g_backward(dy2, g_cache), || the whole gradient of y1
    return x1, x2 -> return y1, y2 || x2, found again || y1 is at hand
"""
