SUM = "gradients[name] + gradient if name in gradients else gradient"

WRONG = """
residual_chain_slope
    [1 + slope -> [slope || 1 plus something
    np.prod([1 + slope for slope in slopes]) -> sum(slopes) || 1 plus something
    np.prod([1 + slope for slope in slopes]) -> 1 + sum(slopes) || 1 plus something
gram
    x @ x.T -> x.T @ x || has the shape
    (dy + dy.T) -> 2 * dy || symmetric dy
two_layer_network
    y = x + h -> y = h || is x added at the end
    dx = dy + dz -> dx = dz || dy itself is missing
gradients_of
    $SUM -> gradient || are the gradients of all uses added
    : dy} -> : dy.copy()}
        && gradients[name] + gradient -> np.add(gradients[name], gradient, out=gradients[name])
        || an array that is nobody else's
    reversed(tape) -> tape && $SUM -> gradient || there is no gradient of 'w'
    continue -> pass || KeyError
    continue -> pass && gradients[output] -> gradients.get(output, dy) || does not depend on
"""
RIGHT = """
gradients_of
    continue -> gradients[output] = 0.0  # zeros for what has no influence
"""
