"""Activations: one entry of y for each of x, and now and then a parameter of the curve."""

import math

import numpy as np

from battery.table import away, normal, right

PAIRS = []


def sigma(x):
    return 1 / (1 + np.exp(-x))


def relu(x):
    return np.maximum(x, 0), x


def relu_backward(dy, x):
    return dy * (x > 0)


PAIRS += right("relu", relu, away((3, 7))).with_slips(
    ({" * (x > 0)": ""}, "condition wrong",
     "where x is negative it is not zero and should be; elsewhere it is"),
    ({"x > 0": "dy > 0"}, "condition wrong", "not linear in dy"),
    ({"x > 0": "x < 0"}, "condition wrong", "the condition is the wrong way round"),
    ({"x > 0": "x > 1"}, "condition wrong",
     "it is right wherever both are not zero, but zero where it should not"),
    ({"(x > 0)": "relu(x)[0]"}, "derivative of another function",
     "1: the factor x is too many, a power is wrong; elsewhere it is right"),
)


def leaky_relu(x):
    return np.where(x > 0, x, 0.1 * x), x


def leaky_relu_backward(dy, x):
    return dy * np.where(x > 0, 1, 0.1)


PAIRS += right("leaky relu", leaky_relu, away((4, 4))).with_slips(
    ({"1, 0.1": "1, 0"}, "condition wrong", "where x is negative it is zero and should not be"),
    ({"1, 0.1": "0.1, 1"}, "condition wrong",
     "10 times too large: the condition is the wrong way round"),
    ({"1, 0.1": "1, 0.1 * x"}, "derivative of another function"),
)


def elu(x):
    y = np.where(x > 0, x, 0.7 * (np.exp(x) - 1))
    return y, (x, y)


def elu_backward(dy, cache):
    x, y = cache
    return dy * np.where(x > 0, 1, y + 0.7)


PAIRS += right("elu", elu, away((5, 4))).with_slips(
    ({"y + 0.7": "y"}, "term missing"),
    ({"y + 0.7": "np.exp(x)"}, "factor in a branch",
     "where x is negative it is 1.42857 times too large; elsewhere it is"),
    ({"y + 0.7": "0.7 * np.exp(y)"}, "derivative at y",
     "it should be dy times 0.7 exp(x): y in place of x; elsewhere it is right"),
)


def gelu(x):
    t = np.tanh(0.8 * (x + 0.044715 * x**3))
    return 0.5 * x * (1 + t), (x, t)


def gelu_backward(dy, cache):
    x, t = cache
    inner = 0.8 * (1 + 3 * 0.044715 * x**2)
    return dy * 0.5 * (1 + t + x * (1 - t * t) * inner)


GELU = right("gelu with tanh", gelu, normal((3, 5)))
PAIRS += GELU.with_slips(
    ({" + x * (1 - t * t) * inner": ""}, "term missing"),
    ({" * inner": ""}, "inner derivative missing"),
    ({"3 * ": ""}, "inner derivative missing", "lacks the exponent as a factor"),
    ({"t * t": "t"}, "power wrong"),
)


def erf_gelu(x):
    phi = 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    return x * phi, (x, phi)


def erf_gelu_backward(dy, cache):
    x, phi = cache
    return dy * (phi + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi))


PAIRS += right("gelu with erf", erf_gelu, normal((2, 7))).with_slips(
    ({" / math.sqrt(2 * math.pi)": ""}, "term wrong", "is 2.5066 times too large"),
    ({"-x * x / 2": "-x * x"}, "term wrong"),
    ({"phi + x": "phi - x"}, "sign of a term"),
)


def silu(x):
    s = sigma(x)
    return x * s, (x, s)


def silu_backward(dy, cache):
    x, s = cache
    return dy * (s + x * s * (1 - s))


PAIRS += right("silu", silu, normal((4, 16))).with_slips(
    ({" + x * s * (1 - s)": ""}, "term missing", "in `sigma(x)`"),
    ({"x * s * (1 - s)": "s * (1 - s)"}, "term wrong"),
)


def softplus(x):
    return np.logaddexp(0, x), x


def softplus_backward(dy, x):
    return dy * sigma(x)


PAIRS += right("softplus", softplus, normal((6, 2))).with_slips(
    ({"sigma(x)": "sigma(-x)"}, "sign", "the derivative is taken at −x: a sign is wrong"),
    ({"sigma(x)": "sigma(x) * (1 - sigma(x))"}, "differentiated twice",
     "it should be dy times σ(x): the factor exp(y) is missing"),
)


def tanh(x):
    y = np.tanh(x)
    return y, (x, y)


def tanh_backward(dy, cache):
    _, y = cache
    return dy * (1 - y * y)


PAIRS += right("tanh", tanh, normal((3, 4))).with_slips(
    ({"y * y": "y"}, "power wrong", "it is dy times (1 − y); it should be dy times (1 − y²)"),
    ({"y * y": "cache[0] ** 2"}, "derivative at x", "(1 − y²): x in place of y"),
    ({"y * y": "np.tanh(y) ** 2"}, "derivative at y", "taken at y; it has to be taken at x"),
    ({"1 - y": "-y"}, "term missing", "or a 1 is left out of the derivative"),
    ({"1 - y": "1 + y"}, "sign of a term", "it should be dy times (1 − y²): a sign is wrong"),
    ({"1 - y * y": "y * (1 - y)"}, "derivative of another function"),
    ({" * (1 - y * y)": ""}, "derivative left out",
     "times (1 − y²): dy is handed on as it is, the derivative is left out"),
)


def sigmoid(x):
    y = sigma(x)
    return y, (x, y)


def sigmoid_backward(dy, cache):
    _, y = cache
    return dy * y * (1 - y)


PAIRS += right("sigmoid", sigmoid, normal((2, 3, 5))).with_slips(
    ({" * (1 - y)": ""}, "term missing", "dy times y (1 − y): the factor (1 − y) is missing"),
    ({"y * (1 - y)": "(1 - y)"}, "term missing"),
    ({"_, y": "y, _"}, "derivative at x"),
    ({"y * (1 - y)": "sigma(y) * (1 - sigma(y))"}, "derivative at y"),
    ({"1 - y": "1 - y * y"}, "power wrong"),
)


def softsign(x):
    return x / (1 + np.abs(x)), x


def softsign_backward(dy, x):
    return dy / (1 + np.abs(x)) ** 2


PAIRS += right("softsign", softsign, away((3, 5))).with_slips(
    ({" ** 2": ""}, "power wrong"),
)


def hard_tanh(x):
    return np.clip(x, -1, 1), x


def hard_tanh_backward(dy, x):
    return dy * (np.abs(x) < 1)


def around_one(rng):
    x = rng.choice([-1.0, 1.0], (4, 6)) * rng.choice([0.5, 1.5], (4, 6))
    return (x + rng.uniform(-0.4, 0.4, (4, 6)),)


PAIRS += right("clipping", hard_tanh, around_one).with_slips(
    ({"np.abs(x) < 1": "x < 1"}, "condition wrong",
     "where x is below about -1.03 it is not zero and should be; elsewhere"),
    ({" * (np.abs(x) < 1)": ""}, "condition wrong",
     "where |x| is above about 1.03 it is not zero and should be; elsewhere"),
)


def swish(x, beta):
    s = sigma(beta * x)
    return x * s, (x, beta, s)


def swish_backward(dy, cache):
    x, beta, s = cache
    dz = dy * x * s * (1 - s)
    return dy * s + beta * dz, (x * dz).sum(0)


PAIRS += right("swish with β for each feature", swish, normal((5, 3), (3,))).with_slips(
    ({"beta * dz": "dz"}, "inner derivative missing"),
    ({"(x * dz)": "dz"}, "inner derivative missing"),
    ({".sum(0)": ".sum()"}, "sum over too much",
     "it is the sum of all 3 entries of the right one: a sum has to run over fewer axes"),
)


def prelu(x, alpha):
    return np.where(x > 0, x, alpha * x), (x, alpha)


def prelu_backward(dy, cache):
    x, alpha = cache
    return dy * np.where(x > 0, 1, alpha), (dy * x * (x < 0)).sum((0, 1))


PAIRS += right("prelu", prelu, away((2, 3, 4), (4,))).with_slips(
    ({" * (x < 0)": ""}, "condition wrong", "the condition, a mask, is forgotten"),
    ({".sum((0, 1))": ".sum(0)[0]"}, "sum forgotten",
     "it sums over the first index of axis 1 of dy only, and not over all 3"),
    ({"(dy * x": "(alpha * dy * x"}, "gain twice"),
)


def dropped(x, keep):
    """Dropout with a given mask, of p = 0.4."""
    return x * keep / 0.6, keep


def dropped_backward(dy, keep):
    return dy * keep / 0.6


PAIRS += right("dropout", dropped,
               lambda rng: (rng.standard_normal((4, 6)), rng.random((4, 6)) < 0.6)).with_slips(
    ({" / 0.6": ""}, "factor"),
    ({"keep /": "(np.random.default_rng(5).random(keep.shape) < 0.6) /"}, "mask drawn again",
     "it is right wherever both are not zero, but others of its entries are"),
    ({" * keep": ""}, "mask missing",
     "it should be dy times 1.6667 keep: the factor keep is missing"),
    ({"* keep": "* ~keep"}, "mask inverted", "it should be dy times 1.6667 keep: keep is inverted"),
)
