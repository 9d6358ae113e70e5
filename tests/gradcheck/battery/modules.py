"""Modules: what they own, what they add to, and what they leave on themselves."""

import numpy as np

from battery.table import RightModule, normal
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


PAIRS += RightModule("dense module", Dense, normal((4, 3))).with_slips(
    ({"self.b.grad += dy.sum(0)": "pass"}, "gradient left out"),
    ({"+= x.T": "+= 2 * x.T"}, "factor"),
    ({"dy.sum(0)": "dy.mean(0)"}, "mean in place of sum"),
    ({"return dy @": "dy @"}, "gradient left out"),
)


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


PAIRS += RightModule("one matrix at two places", Twice, normal((4, 3))).with_slips(
    ({"self.w.grad += x.T @ dz": "pass"}, "second use forgotten"),
    ({"dz @ self.w.data.T": "dz @ self.w.data"}, "transposed"),
)


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


PAIRS += RightModule("module of modules", Scaled, normal((5, 4))).with_slips(
    ({"dh * self.gain.data[:3]": "dh"}, "gain missing"),
)
