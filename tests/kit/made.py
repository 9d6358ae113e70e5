"""Generic slips, made of any right pair: each gradient wrong in a way of its own."""

from functools import lru_cache

import numpy as np

KINDS = {  # as in battery.says; of the gradients as a function of dy, that of one input
    "factor": lambda of, dy, i: 1.7 * of(dy)[i],
    "sign": lambda of, dy, i: -of(dy)[i],
    "dy twice": lambda of, dy, i: of(dy * dy)[i],
    "dy forgotten": lambda of, dy, i: of(np.ones_like(dy))[i],
    "transposed": lambda of, dy, i: of(dy)[i].swapaxes(-1, -2),
    "sum forgotten": lambda of, dy, i: np.stack([of(row)[i] for row in rows_alone(dy)]),
}


class MadeWrong:
    """The backward of a pair with generic slips, the first gradient's of kind number ``first``.

    The next gradient has the next kind that makes another gradient of it.

    Attributes:
        kinds: of the slip in each gradient, by its position among those of backward; None for one
            that no slip changes. Gradients of None are left alone.
    """

    def __init__(self, backward, first):
        self.backward = backward
        self.kinds = {}
        self.first = first

    def __call__(self, dy, cache):
        @lru_cache
        def of_bytes(content):
            result = self.backward(np.frombuffer(content).reshape(dy.shape), cache)
            return tuple(result) if isinstance(result, tuple | list) else (result,)

        def of(dy):
            return of_bytes(dy.tobytes())  # once, for however many gradients

        right = of(dy)
        if not self.kinds:
            self._choose(right, of, dy)
        return tuple(
            KINDS[self.kinds[i]](of, dy, i) if self.kinds.get(i) else gradient
            for i, gradient in enumerate(right)
        )

    def _choose(self, right, of, dy):
        at = self.first
        for i, gradient in enumerate(right):
            if gradient is None:
                continue
            order = [*KINDS, *KINDS][at % len(KINDS) :]
            differs = (
                kind
                for kind in order
                if makes_sense(kind, gradient, dy) and not same(KINDS[kind](of, dy, i), gradient)
            )
            self.kinds[i] = next(differs, None)
            at = order.index(self.kinds[i]) + at + 1 if self.kinds[i] else at


def same(a, b):
    return np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-6, atol=0)


def makes_sense(kind, gradient, dy):
    """Whether there is such a slip in a gradient of that shape."""
    if kind == "transposed":
        return np.ndim(gradient) >= 2
    if kind == "sum forgotten":  # over the batch, which an input has itself
        return np.ndim(dy) > 0 and np.shape(gradient)[:1] != dy.shape[:1] and len(dy) > 1
    return True


def rows_alone(dy):
    """dy with all but one of its rows zero, for each of them."""
    for n in range(len(dy)):
        alone = np.zeros_like(dy)
        alone[n] = dy[n]
        yield alone
