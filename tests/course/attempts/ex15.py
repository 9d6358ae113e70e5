HALVES = "(weights.mean(axis=0) + np.eye(len(share))) / 2"
ONCE = "how often is that left over"

WRONG = """
attention_entropy
    np.where(weights > 0, weights, 1) -> weights || α log α goes to 0
    np.log( -> np.log2( || natural logarithm
    axis=-1 -> axis=-2 || shape (2, 3, 4)
stand_ins
    + whole -> || $ONCE
    + whole -> + 2 * whole || $ONCE
    in range(i) -> in {*range(num_heads)} - {i} || without 2 and 1  # asks again
attention_rollout
    in encoder -> in encoder[::-1] || stands right
    $HALVES -> weights.mean(axis=0) || by the residual connection
    / 2 -> || are shares, and sum to 1
    in encoder -> in () || the encoder is missing
    $HALVES -> (0.9 * weights.mean(axis=0) + 0.1 * np.eye(len(share))) || then their product
    cross.mean(axis=0) @ share -> share || shape (4, 4) and should have (5, 4)
"""
RIGHT = """
attention_entropy
    np.where(weights > 0, weights, 1) -> weights + 1e-12
"""
