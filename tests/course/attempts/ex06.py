WRONG = """
pairs_that_turn
    int( -> 2 * int( || T − 1 steps  # features
    (length - 1) -> length || T − 1 steps
learned_positions
    table[:length] -> table[-length:] || y is
    dy.sum( -> dy.mean( || 2 times too small: 2 is the batch size
    return dy, dtable -> return dy, None || returned None
_turned
    x[..., 0::2], x[..., 1::2] -> np.split(x, 2, axis=-1) && np.stack -> np.concatenate
        || neighbouring features are a pair  # as some other codes have them
rotary
    (x, 1) -> (x, -1) || neighbouring features are a pair  # clockwise
"""
