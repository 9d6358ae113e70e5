"""How long the matrix products of a step take alone: what no arrangement of the rest can save.

A step of layers is products and, between them, what is done entry by entry. Here the products run
with nothing between them, in the shapes of the step, each into memory that is there. So their share
of our step says how much faster NumPy could make it at most.
"""

import numpy as np
from _turns import seconds_of

BLOCKS, BLOCK = 10, 5  # measurements, of which the best counts, and steps of each


def of_map(*shape):
    """The products of y = x W, where x is (m, k) and W (k, n), or b of each: forward, dx and dW."""
    *several, m, k, n = shape
    return [(*several, m, k, n), (*several, m, n, k), (*several, k, m, n)]


def seconds_of_products(shapes, workers=None):
    """Seconds of products of (m, k) by (k, n), or of b of them at once, one after the other.

    Args:
        shapes: (m, k, n) or (b, m, k, n) of each.
        workers: Workers, of which each does all of it; None for this thread alone.
    """
    count = workers.count if workers else 1
    steps = [_step(shapes) for _ in range(count)]

    def run():
        if workers:
            workers.map(lambda step: step(), steps)
        else:
            steps[0]()

    run()
    return min(seconds_of(run, BLOCK) for _ in range(BLOCKS)) / BLOCK


def _step(shapes):
    rng, made = np.random.default_rng(0), {}
    for shape in set(shapes):
        *several, m, k, n = shape
        sizes = (m, k), (k, n), (m, n)
        made[shape] = [rng.standard_normal((*several, *x)).astype(np.float32) for x in sizes]

    def run():
        for shape in shapes:
            x, weight, y = made[shape]
            np.matmul(x, weight, out=y)

    return run


def in_words(row):
    """What the products are of both sides, of a row that has ``products_seconds``."""
    products = row["products_seconds"]
    ours, theirs = (products / row[side] for side in ("seconds", "torch_seconds"))
    return f"{1e3 * products:.1f} ms, {ours:.0%} of our step and {theirs:.0%} of PyTorch's"
