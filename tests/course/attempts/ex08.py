LARGE = "y for scores of ±4000 || subtract the largest score of a row"

WRONG = """
score_of_itself
    np.sqrt(d_k), -> 1.0, || only then divided
    np.sqrt(d_k), np.sqrt(2) -> 0.0, 1.0 || the mean for d_k=1 is 0  # of two positions
    np.sqrt(2) -> 2.0 || the root comes last
    , np.sqrt(2) -> || two numbers
packed_mask
    (same & -> ( || different sentences
    & not_ahead -> || comes after it
    & real -> || padding looks at nothing
    <= position -> < position || may look
    (same & real & not_ahead) -> (1.0 * same * real * not_ahead) || boolean array; it is float64
    not_ahead)[:, None] -> not_ahead) || should have (3, 1, 7, 7)
biased_attention
    * scale + bias -> * scale + bias * scale || after the division
    z - z.max(axis=-1, keepdims=True) -> z || $LARGE
    dz.sum(axis=0) -> dz.mean(axis=0) || 2 times too small: 2 is the batch size
    dz.sum(axis=0) -> dz || summed over the leading axes
lean_attention
    y, log_sum) -> y, log_sum, z) || array of 378 numbers
    z.max(axis=-1, keepdims=True) -> 0 || $LARGE
    keepdims=True)) * scale -> keepdims=True)) || 2.23607 is √5, the root of the head width d_k
    scale - log_sum) -> scale) / np.exp(log_sum) || dquery for scores of ±4000
"""
