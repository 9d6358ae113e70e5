"""Exercise 10, residual connections: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import check_gradients, expect, normal, part

B, T, D = 2, 3, 5


@part(10)
def check_branch_scale(branch_scale):
    hint = "s multiplies f, and its square the mean square of f; and then n times over"
    for num_blocks, v, growth in ((64, 0.5, 2.0), (7, 1.3, 10.0)):
        expected = np.sqrt((growth ** (1 / num_blocks) - 1) / v)
        branch_scale.expect((num_blocks, v, growth), expected, hint)


@part(25)
def check_gated_residual(forward, backward):
    x, h = normal(10, (B, T, D), (B, T, D))
    for alpha in (np.array(0.7), np.array(0.0)):
        z, _ = forward.y_and_cache(x, h, alpha)
        expect(f"z for alpha = {alpha:g}", z, x + alpha * h)
    return check_gradients(forward, backward, (x, h, np.array(0.7)))


@part(45)
def check_reversible_block(forward, backward):
    x1, x2, dy1, dy2 = normal(10, *4 * [(B, T, D)])
    f, g = (_sublayer(weight) for weight in normal(100, (D, D), (D, D)))
    y1 = x1 + f[0](x2)[0]
    y2 = x2 + g[0](y1)[0]

    outputs = forward.several(2, "y1, y2", x1, x2, f, g)
    expect("y1", outputs[0], y1)
    expect("y2", outputs[1], y2, "g is given y1, which f has corrected already")

    results = backward.several(4, "x1, x2, dx1, dx2", y1, y2, dy1, dy2, f, g)
    expect("x2, found again", results[1], x2, "y2 is x2 + g(y1), and y1 is at hand")
    expect("x1, found again", results[0], x1, "y1 is x1 + f(x2): x2 comes first")
    dy1 = dy1 + g[1](dy2, g[0](y1)[1])
    expect("dx1", results[2], dy1, "y1 is an output, and the input of g as well")
    dx2 = dy2 + f[1](dy1, f[0](x2)[1])
    expect("dx2", results[3], dx2, "what comes back through f is the whole gradient of y1")


def _sublayer(weight):
    """The pair of y = sin(x W)."""

    def forward(x):
        z = x @ weight
        return np.sin(z), np.cos(z)

    def backward(dy, slope):
        return dy * slope @ weight.T

    return forward, backward
