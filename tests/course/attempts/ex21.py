LENGTH = "max(0, (gates - 2) * d)"

WRONG = r"""
crossing_length
    $LENGTH -> gates * d || attention has four projections
    (gates - 2) -> (gates / 2 - 2) || each gate has two matrices
    $LENGTH -> (gates - 2) * d || crossing_length(64, 1) is -64 and should be 0
    $LENGTH -> d || count multiply-adds
distances_seen
    [tap * dilation for tap in range(width) if tap * dilation < n]
        -> range(min(n, (width - 1) * dilation + 1)) || 2 is not seen: a stack may have holes
    in layers -> in layers[-1:] || add one of the distances of each layer
    range(width) -> range(width + 1) || for [(3, 1)] distance 3 is not seen: it is too far away
    np.arange(n) == 0 -> np.arange(n) < 0 || each layer sees its own position
    return seen -> return seen * 1.0 || it is float64
    return seen -> return np.append(seen, False) || should have (16,)
"""
