MASKED = "np.where(mask[:, None], scores, -np.inf)"

WRONG = r"""
letters_that_fit
    (length + 1) -> length || not the first that does not
    <= -> < || just as many words as states do fit
    levels**numbers -> levels * numbers || there are levels to the power of numbers
bilinear_attention
    $MASKED -> scores || its score is −∞
    $MASKED -> scores && return weights @ -> weights = weights * mask[:, None]\n    return weights @
        || add up to 1 again
    -np.inf) -> -np.inf) / query.shape[-1] ** 0.5 || there is no √d here
bilinear_attention_backward
    + dkeys @ weight -> || a state is a key as well as a value
    - mean -> || WRONG  dquery || WRONG  dweight
"""
