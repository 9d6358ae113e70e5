"""Activations: one entry of y for each of x, and now and then a parameter of the curve."""

import math

import numpy as np

from battery.table import Right, away, normal

PAIRS = []


def sigma(x):
    return 1 / (1 + np.exp(-x))


def relu(x):
    return np.maximum(x, 0), x


def relu_backward(dy, x):
    return dy * (x > 0)


PAIRS += Right("relu", relu, relu_backward, away((3, 7))).with_slips(
    ({" * (x > 0)": ""}, "dx", "condition wrong", "dy passes where x is negative, too",
     "where x is negative it is not zero and should be; elsewhere it is"),
    ({"x > 0": "dy > 0"}, "dx", "condition wrong", "the sign of dy is asked, not of x",
     "not linear in dy"),
    ({"x > 0": "x < 0"}, "dx", "condition wrong", "dy passes where x is negative",
     "the condition is the wrong way round"),
    ({"x > 0": "x > 1"}, "dx", "condition wrong", "dy passes only beyond 1",
     "it is right wherever both are not zero, but zero where it should not"),
    ({"(x > 0)": "relu(x)[0]"}, "dx", "derivative of another function", "y for y′",
     "1: the factor x is too many, a power is wrong; elsewhere it is right"),
)


def leaky_relu(x):
    return np.where(x > 0, x, 0.1 * x), x


def leaky_relu_backward(dy, x):
    return dy * np.where(x > 0, 1, 0.1)


PAIRS += Right("leaky relu", leaky_relu, leaky_relu_backward, away((4, 4))).with_slips(
    ({"1, 0.1": "1, 0"}, "dx", "condition wrong", "no slope where x is negative",
     "where x is negative it is zero and should not be"),
    ({"1, 0.1": "0.1, 1"}, "dx", "condition wrong", "the two slopes are exchanged",
     "10 times too large: the condition is the wrong way round"),
    ({"1, 0.1": "1, 0.1 * x"}, "dx", "derivative of another function", "y where y′"),
)


def elu(x):
    y = np.where(x > 0, x, 0.7 * (np.exp(x) - 1))
    return y, (x, y)


def elu_backward(dy, cache):
    x, y = cache
    return dy * np.where(x > 0, 1, y + 0.7)


PAIRS += Right("elu", elu, elu_backward, away((5, 4))).with_slips(
    ({"y + 0.7": "y"},               "dx", "term missing",       "the slope is y, without α"),
    ({"y + 0.7": "np.exp(x)"},       "dx", "factor in a branch", "α is forgotten",
     "where x is negative it is 1.42857 times too large; elsewhere it is"),
    ({"y + 0.7": "0.7 * np.exp(y)"}, "dx", "derivative at y",    "exp is taken of y",
     "it should be dy times 0.7 exp(x): y in place of x; elsewhere it is right"),
)


def gelu(x):
    t = np.tanh(0.8 * (x + 0.044715 * x**3))
    return 0.5 * x * (1 + t), (x, t)


def gelu_backward(dy, cache):
    x, t = cache
    inner = 0.8 * (1 + 3 * 0.044715 * x**2)
    return dy * 0.5 * (1 + t + x * (1 - t * t) * inner)


GELU = Right("gelu with tanh", gelu, gelu_backward, normal((3, 5)))
PAIRS += GELU.with_slips(
    ({" + x * (1 - t * t) * inner": ""}, "dx", "term missing", "x is not differentiated"),
    ({" * inner": ""}, "dx", "inner derivative missing", "no derivative inside tanh"),
    ({"3 * ": ""}, "dx", "inner derivative missing", "the 3 of the cube is forgotten",
     "lacks the exponent as a factor"),
    ({"t * t": "t"}, "dx", "power wrong", "1 − tanh for 1 − tanh²"),
    ({"1 + t + ": ""}, "dx", "term missing", "the first term is missing"),
)


def erf_gelu(x):
    phi = 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    return x * phi, (x, phi)


def erf_gelu_backward(dy, cache):
    x, phi = cache
    return dy * (phi + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi))


PAIRS += Right("gelu with erf", erf_gelu, erf_gelu_backward, normal((2, 7))).with_slips(
    ({" / math.sqrt(2 * math.pi)": ""}, "dx", "term wrong",     "no 1 / √2π",
     "is 2.5066 times too large"),
    ({"-x * x / 2": "-x * x"},          "dx", "term wrong",     "exp(−x²) for exp(−x²/2)"),
    ({"phi + x": "phi - x"},            "dx", "sign of a term", "minus between the terms"),
)


def silu(x):
    s = sigma(x)
    return x * s, (x, s)


def silu_backward(dy, cache):
    x, s = cache
    return dy * (s + x * s * (1 - s))


PAIRS += Right("silu", silu, silu_backward, normal((4, 16))).with_slips(
    ({" + x * s * (1 - s)": ""}, "dx", "term missing", "σ′ is left out", "in `sigma(x)`"),
    ({"s + x * s": "x * s"}, "dx", "term missing", "the factor x is not differentiated"),
    ({"x * s * (1 - s)": "s * (1 - s)"}, "dx", "term wrong", "x before σ′ is forgotten"),
)


def softplus(x):
    return np.logaddexp(0, x), x


def softplus_backward(dy, x):
    return dy * sigma(x)


PAIRS += Right("softplus", softplus, softplus_backward, normal((6, 2))).with_slips(
    ({"sigma(x)": "sigma(-x)"},                 "dx", "sign",                 "σ(−x) for σ(x)",
     "the derivative is taken at −x: a sign is wrong"),
    ({"sigma(x)": "sigma(softplus(x)[0])"},     "dx", "derivative at y",      "σ is taken at y"),
    ({"sigma(x)": "sigma(x) * (1 - sigma(x))"}, "dx", "differentiated twice", "σ′",
     "it should be dy times σ(x): the factor exp(y) is missing"),
)


def tanh(x):
    y = np.tanh(x)
    return y, (x, y)


def tanh_backward(dy, cache):
    _, y = cache
    return dy * (1 - y * y)


TANH = Right("tanh", tanh, tanh_backward, normal((3, 4)))
PAIRS += TANH.with_slips(
    ({"y * y": "y"}, "dx", "power wrong", "1 − y for 1 − y²",
     "it is dy times (1 − y); it should be dy times (1 − y²)"),
    ({"y * y": "cache[0] ** 2"}, "dx", "derivative at x", "1 − x² for 1 − y²",
     "(1 − y²): x in place of y"),
    ({"y * y": "np.tanh(y) ** 2"}, "dx", "derivative at y", "tanh′ is taken at y",
     "taken at y; it has to be taken at x"),
    ({"1 - y": "-y"}, "dx", "term missing", "−y² without the 1",
     "or a 1 is left out of the derivative"),
    ({"1 - y": "1 + y"}, "dx", "sign of a term", "1 + y² for 1 − y²",
     "it should be dy times (1 − y²): a sign is wrong"),
    ({"1 - y * y": "y * (1 - y)"}, "dx", "derivative of another function", "σ′"),
    ({" * (1 - y * y)": ""}, "dx", "derivative left out", "dy is handed on as it is",
     "times (1 − y²): dy is handed on as it is, the derivative is left out"),
)


def sigmoid(x):
    y = sigma(x)
    return y, (x, y)


def sigmoid_backward(dy, cache):
    _, y = cache
    return dy * y * (1 - y)


PAIRS += Right("sigmoid", sigmoid, sigmoid_backward, normal((2, 3, 5))).with_slips(
    ({" * (1 - y)": ""},                           "dx", "term missing",    "1 − y is left out",
     "dy times y (1 − y): the factor (1 − y) is missing"),
    ({"y * (1 - y)": "(1 - y)"},                   "dx", "term missing",    "y is left out"),
    ({"_, y": "y, _"},                             "dx", "derivative at x", "x for y"),
    ({"y * (1 - y)": "sigma(y) * (1 - sigma(y))"}, "dx", "derivative at y", "σ′ is taken at y"),
    ({"1 - y": "1 - y * y"},                       "dx", "power wrong",     "y (1 − y²)"),
)


def softsign(x):
    return x / (1 + np.abs(x)), x


def softsign_backward(dy, x):
    return dy / (1 + np.abs(x)) ** 2


PAIRS += Right("softsign", softsign, softsign_backward, away((3, 5))).with_slips(
    ({" ** 2": ""}, "dx", "power wrong", "the quotient's square is forgotten"),
)


def hard_tanh(x):
    return np.clip(x, -1, 1), x


def hard_tanh_backward(dy, x):
    return dy * (np.abs(x) < 1)


def around_one(rng):
    x = rng.choice([-1.0, 1.0], (4, 6)) * rng.choice([0.5, 1.5], (4, 6))
    return (x + rng.uniform(-0.4, 0.4, (4, 6)),)


PAIRS += Right("clipping", hard_tanh, hard_tanh_backward, around_one).with_slips(
    ({"np.abs(x) < 1": "x < 1"}, "dx", "condition wrong", "only one side is clipped",
     "where x is below about -1.03 it is not zero and should be; elsewhere"),
    ({" * (np.abs(x) < 1)": ""}, "dx", "condition wrong", "the clipping is forgotten",
     "where |x| is above about 1.03 it is not zero and should be; elsewhere"),
)


def swish(x, beta):
    s = sigma(beta * x)
    return x * s, (x, beta, s)


def swish_backward(dy, cache):
    x, beta, s = cache
    dz = dy * x * s * (1 - s)
    return dy * s + beta * dz, (x * dz).sum(0)


SWISH = Right("swish with β for each feature", swish, swish_backward, normal((5, 3), (3,)))
PAIRS += SWISH.with_slips(
    ({"beta * dz": "dz"},     "dx",    "inner derivative missing", "β is missing in dx"),
    ({"(x * dz)": "dz"},      "dbeta", "inner derivative missing", "x is missing in dβ"),
    ({".sum(0)": ".mean(0)"}, "dbeta", "mean in place of sum",     "dβ is a mean"),
    ({".sum(0)": ".sum()"},   "dbeta", "sum over too much",        "dβ is summed over features",
     "it is the sum of all 3 entries of the right one: a sum has to run over fewer axes"),
)


def prelu(x, alpha):
    return np.where(x > 0, x, alpha * x), (x, alpha)


def prelu_backward(dy, cache):
    x, alpha = cache
    return dy * np.where(x > 0, 1, alpha), (dy * x * (x < 0)).sum((0, 1))


PAIRS += Right("prelu", prelu, prelu_backward, away((2, 3, 4), (4,))).with_slips(
    ({" * (x < 0)": ""},             "dalpha", "condition wrong", "all entries count, not x < 0",
     "the condition, a mask, is forgotten"),
    ({".sum((0, 1))": ".sum(0)[0]"}, "dalpha", "sum forgotten",   "dα of one row only",
     "it sums over the first index of axis 1 of dy only, and not over all 3"),
    ({"(dy * x": "(alpha * dy * x"}, "dalpha", "gain twice",      "α is not yet gone in dα"),
)


def dropped(x, keep):
    """Dropout with a given mask, of p = 0.4."""
    return x * keep / 0.6, keep


def dropped_backward(dy, keep):
    return dy * keep / 0.6


DROPPED = Right("dropout", dropped, dropped_backward,
                lambda rng: (rng.standard_normal((4, 6)), rng.random((4, 6)) < 0.6))
PAIRS += DROPPED.with_slips(
    ({" / 0.6": ""}, "dx", "factor", "not divided by 1 − p"),
    ({"keep /": "(np.random.default_rng(5).random(keep.shape) < 0.6) /"}, "dx", "mask drawn again",
     "another mask is drawn in backward",
     "it is right wherever both are not zero, but others of its entries are"),
    ({" * keep": ""}, "dx", "mask missing", "the mask is forgotten",
     "it should be dy times 1.6667 keep: the factor keep is missing"),
    ({"* keep": "* ~keep"}, "dx", "mask inverted", "the mask is inverted",
     "it should be dy times 1.6667 keep: keep is inverted"),
)
