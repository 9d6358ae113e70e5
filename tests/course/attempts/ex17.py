PEAK = "new_peak if new_peak > -np.inf else 0.0"

WRONG = """
rows_to_be_busy
    - itemsize * (d_in + d_out) / bandwidth -> || X, W and Y cross
    if gain > 0 else math.inf -> || should be inf
relu_dropout
    (y, scale) -> (y, scale, keep[0, 0]) || no x and no mask
streamed_average
    np.exp(peak - reference) -> 1 || earlier sums brought to the new peak
    $PEAK -> 0.0 && np.exp(peak - reference) -> 1 || rising scores is nan
    $PEAK -> new_peak || a first block that is forbidden is nan
"""
