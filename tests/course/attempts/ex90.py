NORM = "xp.sqrt((gradient * gradient).sum())"
CLIPPED = "gradient * (limit / xp.maximum(norm, limit))"

WRONG = """
break_even
    6 / ( -> 2 / ( || three matrices
merges_without_copy
    if 0 in shape or outer == 1 or inner == 1 -> if False || is False and should be True
    == inner * strides -> >= strides || is True and should be False
clip_without_waiting
    $NORM -> float($NORM) && $CLIPPED -> gradient * (limit / norm) if norm > limit else gradient
        || it waits 1 times
    limit / xp.maximum(norm, limit) -> xp.minimum(1.0, limit / norm) || divide by zero
    limit = float(limit) -> limit = xp.asarray(limit, gradient.dtype) || and uploads 1 arrays
    limit = float(limit) -> pass || float64 scalar among the factors
    xp = array_namespace(gradient) -> import numpy as xp || FarArray
    limit = float(limit) -> gradient *= 0.5 || read-only
    return $CLIPPED -> return gradient || should be
project_heads
    (rows @ weight).reshape(batch, length, d_model) -> (heads @ w_output).sum(axis=1)
        || makes 6 GEMMs and should make 1
    rows = heads.swapaxes(1, 2) -> rows = heads || head h belongs to
    drows.reshape(batch, length, num_heads, head_width).swapaxes(1, 2)
        -> drows.reshape(batch, num_heads, length, head_width) || WRONG  dheads
"""
RIGHT = """
project_heads
    (rows @ weight).reshape(batch, length, d_model)
        -> array_namespace(heads).tensordot(heads, w_output, ((1, 3), (0, 1)))
"""
