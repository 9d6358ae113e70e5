"""Modules: what they own, what they add to, and what they leave on themselves."""

import numpy as np

from battery.table import RightModule, WrongModule, normal
from minitransformer.core.module import Module, Parameter

PAIRS = []


class Dense(Module):
    """Three features to two."""

    def __init__(self, rng):
        self.w = Parameter(rng.standard_normal((3, 2)))
        self.b = Parameter(rng.standard_normal(2))

    def forward(self, x):
        return x @ self.w.data + self.b.data, x

    def backward(self, dy, x):
        self.w.grad += x.T @ dy
        self.b.grad += dy.sum(0)
        return dy @ self.w.data.T


class DenseReplacing(Dense):
    def backward(self, dy, x):
        self.w.grad = x.T @ dy
        self.b.grad += dy.sum(0)
        return dy @ self.w.data.T


class DenseWithoutBias(Dense):
    def backward(self, dy, x):
        self.w.grad += x.T @ dy
        return dy @ self.w.data.T


class DenseAddingTwice(Dense):
    def backward(self, dy, x):
        self.w.grad += x.T @ dy
        return super().backward(dy, x)


class DenseWithMean(Dense):
    def backward(self, dy, x):
        self.w.grad += x.T @ dy
        self.b.grad += dy.mean(0)
        return dy @ self.w.data.T


class DenseRemembering(Dense):
    def forward(self, x):
        self.x = x
        return super().forward(x)

    def backward(self, dy, x):
        return super().backward(dy, self.x)


class DenseReturningNothing(Dense):
    def backward(self, dy, x):
        super().backward(dy, x)


class DenseReturningAList(Dense):
    def backward(self, dy, x):
        return [super().backward(dy, x)]


DENSE = RightModule("dense module", Dense, normal((4, 3)))
PAIRS += [
    DENSE,
    RightModule("dense module, a list for a tuple", DenseReturningAList, normal((4, 3))),
    WrongModule(DENSE, DenseReplacing, "dw", "gradient replaced",
                "w.grad is replaced, not added to"),
    WrongModule(DENSE, DenseWithoutBias, "db", "gradient left out", "b.grad is left as it is"),
    WrongModule(DENSE, DenseAddingTwice, "dw", "factor", "w.grad is added to twice"),
    WrongModule(DENSE, DenseWithMean, "db", "mean in place of sum", "b.grad gets a mean"),
    WrongModule(DENSE, DenseRemembering, "dw", "state", "backward reads self.x"),
    WrongModule(DENSE, DenseReturningNothing, "dx", "gradient left out", "the return is forgotten"),
]


class Namesake(Module):
    """Its input has the name of its parameter."""

    def __init__(self, rng):
        self.w = Parameter(rng.standard_normal(5))

    def forward(self, w):
        return w * self.w.data, w

    def backward(self, dy, w):
        self.w.grad += (dy * w).sum(0)
        return dy * self.w.data


PAIRS += [RightModule("an input named like a parameter", Namesake, normal((3, 5)))]


class Twice(Module):
    """One matrix, used at two places: tanh(x w) w."""

    def __init__(self, rng):
        self.w = Parameter(rng.standard_normal((3, 3)))

    def forward(self, x):
        h = np.tanh(x @ self.w.data)
        return h @ self.w.data, (x, h)

    def backward(self, dy, cache):
        x, h = cache
        self.w.grad += h.T @ dy
        dz = dy @ self.w.data.T * (1 - h * h)
        self.w.grad += x.T @ dz
        return dz @ self.w.data.T


class TwiceWithoutTheFirst(Twice):
    def backward(self, dy, cache):
        _, h = cache
        self.w.grad += h.T @ dy
        dz = dy @ self.w.data.T * (1 - h * h)
        return dz @ self.w.data.T


class TwiceWithoutTranspose(Twice):
    def backward(self, dy, cache):
        dx = super().backward(dy, cache)
        return dx @ np.linalg.inv(self.w.data.T) @ self.w.data


TWICE = RightModule("one matrix at two places", Twice, normal((4, 3)))
PAIRS += [
    TWICE,
    WrongModule(TWICE, TwiceWithoutTheFirst, "dw", "second use forgotten",
                "the first use is forgotten"),
    WrongModule(TWICE, TwiceWithoutTranspose, "dx", "transposed", "w is not transposed at the end"),
]


class Scaled(Module):
    """A gain and a shift for each feature, and a list of parts."""

    def __init__(self, rng):
        self.gain = Parameter(rng.uniform(0.5, 1.5, 4))
        self.parts = [Dense(rng)]

    def forward(self, x):
        y, cache = self.parts[0].forward(x[:, :3] * self.gain.data[:3])
        return y, (x, cache)

    def backward(self, dy, cache):
        x, cache = cache
        dh = self.parts[0].backward(dy, cache)
        self.gain.grad[:3] += (dh * x[:, :3]).sum(0)
        return np.pad(dh * self.gain.data[:3], ((0, 0), (0, 1)))


class ScaledWithoutGain(Scaled):
    def backward(self, dy, cache):
        return super().backward(dy, cache) / self.gain.data


class ScaledOverwriting(Scaled):
    def backward(self, dy, cache):
        before = self.gain.grad.copy()
        dx = super().backward(dy, cache)
        self.gain.grad[:3] -= before[:3]
        return dx


SCALED = RightModule("module of modules", Scaled, normal((5, 4)))
PAIRS += [
    SCALED,
    WrongModule(SCALED, ScaledWithoutGain, "dx", "gain missing", "the gain is forgotten in dx"),
    WrongModule(SCALED, ScaledOverwriting, "dgain", "gradient replaced",
                "gain.grad is written, not added to"),
]
