DRAWN = "np.random.default_rng(0).standard_normal(y.shape)"

WRONG = r"""
best_forward_step
    lambda u, f, f2: u ** 0.5 || smallest?
    2 * math.sqrt( -> math.sqrt(2 * || smallest?  # two roundings taken for one
gradient_by_differences
    function(behind) -> function(x) && (2 * h) -> h || Σ sin
    * dy) -> ) || Σ sin
    ((function(ahead) - function(behind)) * dy).sum()
        -> ((function(ahead) * dy).sum() - (function(behind) * dy).sum()) || before you sum them
    ahead, behind = x.copy() -> ahead, behind = x || read-only
complex_step
    f(x + 1j * h).imag / h -> (f(x + 1e-5) - f(x - 1e-5)) / 2e-5 || nothing is subtracted
    \n    h = 1e-100 -> \n    h = 1e-5 || nothing is subtracted  # too large a step
backward_is_right
    lambda forward, backward, inputs: True || accepts a softmax backward
    $DRAWN -> np.ones_like(y) || is its gradient zero for your dy?
    $DRAWN -> np.ones_like(y) && * abs(numeric).max() -> * max(abs(numeric).max(), 1)
        || what is your upstream gradient?
    $DRAWN -> inputs[0] || does dy differ from x?
    (inputs, gradients, strict=True) -> (inputs[:2], gradients, strict=False) || gradient compared?
    1e-7 -> 1e-2 || what is your tolerance
    output, x, dy) -> output, x, dy, 1e-13) || which is right
    lambda forward, backward, inputs: None || expected True or False
"""
