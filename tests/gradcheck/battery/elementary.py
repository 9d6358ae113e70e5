"""Powers, exponentials and waves: where learners begin."""

import numpy as np

from battery.table import away, normal, positive, right

PAIRS = []


def square(x):
    return x * x, x


def square_backward(dy, x):
    return 2 * x * dy


PAIRS += right("square", square, normal((2, 5))).with_slips(
    ({"* dy": "* dy * dy"}, "dy twice", "dy is used twice"),
    ({"2 * x": "x"}, "factor", "a factor of 2 is missing, as of a square"),
    ({"2 * x": "2"}, "factor x forgotten",
     "it should be dy times 2 x: the factor x is missing, a power is wrong"),
    ({"return ": ""}, "gradient left out"),
)


def cube(x):
    return x**3, x


def cube_backward(dy, x):
    return 3 * x**2 * dy


PAIRS += right("cube", cube, normal((4, 4))).with_slips(
    ({"x**2": "x"}, "power wrong",
     "it is dy times 3 x; it should be dy times 3 x²: a square is missing"),
    ({"x**2": "x**3"}, "power wrong",
     "it should be dy times 3 x²: the factor x is too many, a power is wrong"),
    ({"* dy": "* dy + x**2"}, "term too many", "a term without dy is added to it; without that"),
)


def fourth(x):
    return x**4, x


def fourth_backward(dy, x):
    return 4 * x**3 * dy


PAIRS += right("fourth power, batch of 4, width 16", fourth, normal((4, 16))).with_slips(
    ({"4 * ": ""}, "factor", "4 times too small"),
)


def exp(x):
    y = np.exp(x)
    return y, y


def exp_backward(dy, y):
    return dy * y


PAIRS += right("exp", exp, normal((3, 5))).with_slips(
    ({"* y": "* np.log(y)"}, "derivative at x", "it is dy times x; it should be dy times y"),
    ({"* y": "* np.exp(y)"}, "derivative at y", "taken at y; it has to be taken at x"),
    ({" * y": ""}, "derivative left out"),
)


def log(x):
    return np.log(x), x


def log_backward(dy, x):
    return dy / x


PAIRS += right("log", log, positive((4, 3))).with_slips(
    ({"dy / x": "dy * x"}, "upside down", "upside down"),
    ({"dy / x": "x / dy"}, "upside down", "it is divided by dy; it has to be multiplied by it"),
    ({"dy / x": "dy / np.log(x)"}, "derivative at y"),
)


def sqrt(x):
    y = np.sqrt(x)
    return y, y


def sqrt_backward(dy, y):
    return dy / (2 * y)


PAIRS += right("square root", sqrt, positive((4, 2))).with_slips(
    ({"dy / (2 * y)": "dy * y / 2"}, "upside down",
     "0.5 (1/y): it is upside down, multiplied where it has to be divided"),
    ({"2 * y": "2 * y * y"}, "power wrong"),
)


def reciprocal(x):
    y = 1 / x
    return y, y


def reciprocal_backward(dy, y):
    return -dy * y * y


PAIRS += right("reciprocal", reciprocal, away((3, 4))).with_slips(
    ({"y * y": "y"}, "power wrong"),
    ({"-dy * y * y": "-dy / y**2"}, "upside down"),
)


def sine(x):
    return np.sin(3 * x), x


def sine_backward(dy, x):
    return 3 * np.cos(3 * x) * dy


PAIRS += right("sin 3x", sine, normal((3, 4))).with_slips(
    ({"3 * np": "np"}, "factor"),
    ({"3 * x": "x"}, "term wrong"),
    ({"np.cos": "np.sin"}, "derivative of another function"),
)


def power(x, p):
    y = x**p
    return y, (x, p, y)


def power_backward(dy, cache):
    x, p, y = cache
    return dy * p * x ** (p - 1), (dy * y * np.log(x)).sum(0)


POWER = right("x to the p", power, positive((5, 3), (3,)))
PAIRS += POWER.with_slips(
    ({"(p - 1)": "p"}, "power wrong"),
    ({"dy * p * x": "dy * x"}, "factor p forgotten"),
    ({" * np.log(x)": ""}, "inner derivative missing", "lacks the logarithm of its base"),
)


def absolute(x):
    return np.abs(x), x


def absolute_backward(dy, x):
    return dy * np.sign(x)


PAIRS += right("absolute value", absolute, away((4, 5))).with_slips(
    ({" * np.sign(x)": ""}, "condition wrong",
     "where x is negative its sign is wrong; elsewhere it is right"),
    ({"np.sign(x)": "x"}, "derivative of another function"),
    ({"np.sign(x)": "np.sign(dy)"}, "condition wrong",
     "the sign of dy is lost: it is the same for −dy"),
)


def quotient(x, z):
    return x / z, (x, z)


def quotient_backward(dy, cache):
    x, z = cache
    return dy / z, -dy * x / (z * z)


PAIRS += right("quotient", quotient, away((3, 5), (3, 5))).with_slips(
    ({"(z * z)": "z"}, "power wrong"),
    ({"-dy * x": "-dy"}, "factor x forgotten",
     "it should be dy times −(y/z): the factor x is missing"),
    ({"dy / z, -dy * x / (z * z)": "-dy * x / (z * z), dy / z"}, "exchanged",
     "it is the gradient of x: were two gradients exchanged?"),
)


def product(x, z):
    return x * z, (x, z)


def product_backward(dy, cache):
    x, z = cache
    return dy * z, dy * x


PAIRS += right("product", product, normal((4, 4), (4, 4))).with_slips(
    ({"dy * z, dy * x": "dy * x, dy * z"}, "exchanged"),
    ({"dy * z, ": "dy * x, "}, "own factor", "it is the gradient of z, not that of this input"),
    ({"dy * x": "dy.T * x"}, "transposed", "it is what it would be for a dy that is transposed"),
)
