"""Powers, exponentials and waves: where learners begin."""

import numpy as np

from battery.table import Right, away, normal, positive

PAIRS = []


def square(x):
    return x * x, x


def square_backward(dy, x):
    return 2 * x * dy


PAIRS += Right("square", square, square_backward, normal((2, 5))).with_slips(
    ({"* dy": "* dy * dy"},  "dx", "dy twice",           "dy comes in twice", "dy is used twice"),
    ({"2 * x": "x"},         "dx", "factor",             "the 2 is forgotten, with a batch of 2",
     "a factor of 2 is missing, as of a square"),
    ({"2 * x": "2"},         "dx", "factor x forgotten", "x is forgotten",
     "it should be dy times 2 x: the factor x is missing, a power is wrong"),
    ({"2 * x": "2 * x * x"}, "dx", "derivative at y",    "2 y for 2 x"),
    ({"return ": ""},        "dx", "gradient left out",  "the return is forgotten"),
)


def cube(x):
    return x**3, x


def cube_backward(dy, x):
    return 3 * x**2 * dy


PAIRS += Right("cube", cube, cube_backward, normal((4, 4))).with_slips(
    ({"x**2": "x"},    "dx", "power wrong", "3 x for 3 x²",
     "it is dy times 3 x; it should be dy times 3 x²: a square is missing"),
    ({"x**2": "x**3"}, "dx", "power wrong", "3 x³ for 3 x²",
     "it should be dy times 3 x²: the factor x is too many, a power is wrong"),
)


def fourth(x):
    return x**4, x


def fourth_backward(dy, x):
    return 4 * x**3 * dy


FOURTH = Right("fourth power, batch of 4, width 16", fourth, fourth_backward, normal((4, 16)))
PAIRS += FOURTH.with_slips(
    ({"4 * ": ""}, "dx", "factor", "the 4 is forgotten, with a batch of 4", "4 times too small"),
)


def exp(x):
    y = np.exp(x)
    return y, y


def exp_backward(dy, y):
    return dy * y


PAIRS += Right("exp", exp, exp_backward, normal((3, 5))).with_slips(
    ({"* y": "* np.log(y)"}, "dx", "derivative at x",     "x for y",
     "it is dy times x; it should be dy times y"),
    ({"* y": "* np.exp(y)"}, "dx", "derivative at y",     "exp is taken of y"),
    ({" * y": ""},           "dx", "derivative left out", "dy is handed on as it is"),
)


def log(x):
    return np.log(x), x


def log_backward(dy, x):
    return dy / x


LOG = Right("log", log, log_backward, positive((4, 3)))
PAIRS += LOG.with_slips(
    ({"dy / x": "dy * x"}, "dx", "upside down", "times x for divided by x", "upside down"),
    ({"dy / x": "x / dy"},         "dx", "upside down",     "x / dy for dy / x",
     "it is divided by dy; it has to be multiplied by it"),
    ({"dy / x": "dy / np.log(x)"}, "dx", "derivative at y", "1 / y for 1 / x"),
)


def sqrt(x):
    y = np.sqrt(x)
    return y, y


def sqrt_backward(dy, y):
    return dy / (2 * y)


PAIRS += Right("square root", sqrt, sqrt_backward, positive((4, 2))).with_slips(
    ({"dy / (2 * y)": "dy * y / 2"}, "dx", "upside down", "√x / 2 for 1 / 2√x",
     "0.5 (1/y): it is upside down, multiplied where it has to be divided"),
    ({"2 * y": "2 * y * y"},         "dx", "power wrong", "1 / 2x for 1 / 2√x"),
)


def reciprocal(x):
    y = 1 / x
    return y, y


def reciprocal_backward(dy, y):
    return -dy * y * y


RECIPROCAL = Right("reciprocal", reciprocal, reciprocal_backward, away((3, 4)))
PAIRS += RECIPROCAL.with_slips(
    ({"y * y": "y"},                "dx", "power wrong", "−1 / x for −1 / x²"),
    ({"-dy * y * y": "-dy / y**2"}, "dx", "upside down", "−x² for −1 / x²"),
)


def sine(x):
    return np.sin(3 * x), x


def sine_backward(dy, x):
    return 3 * np.cos(3 * x) * dy


PAIRS += Right("sin 3x", sine, sine_backward, normal((3, 4))).with_slips(
    ({"3 * np": "np"}, "dx", "factor", "the inner 3 is forgotten, with a batch of 3"),
    ({"3 * x": "x"}, "dx", "term wrong", "cos x for cos 3x"),
    ({"np.cos": "np.sin"}, "dx", "derivative of another function", "sin for cos"),
)


def power(x, p):
    y = x**p
    return y, (x, p, y)


def power_backward(dy, cache):
    x, p, y = cache
    return dy * p * x ** (p - 1), (dy * y * np.log(x)).sum(0)


POWER = Right("x to the p", power, power_backward, positive((5, 3), (3,)))
PAIRS += POWER.with_slips(
    ({"(p - 1)": "p"},         "dx", "power wrong",              "p xᵖ for p xᵖ⁻¹"),
    ({"dy * p * x": "dy * x"}, "dx", "factor p forgotten",       "p is forgotten"),
    ({" * np.log(x)": ""},     "dp", "inner derivative missing", "log x is forgotten",
     "lacks the logarithm of its base"),
)


def absolute(x):
    return np.abs(x), x


def absolute_backward(dy, x):
    return dy * np.sign(x)


PAIRS += Right("absolute value", absolute, absolute_backward, away((4, 5))).with_slips(
    ({" * np.sign(x)": ""}, "dx", "condition wrong", "the sign of x is forgotten",
     "where x is negative its sign is wrong; elsewhere it is right"),
    ({"np.sign(x)": "x"}, "dx", "derivative of another function", "x for its sign"),
    ({"np.sign(x)": "np.sign(dy)"}, "dx", "condition wrong", "the sign of dy",
     "the sign of dy is lost: it is the same for −dy"),
)


def quotient(x, z):
    return x / z, (x, z)


def quotient_backward(dy, cache):
    x, z = cache
    return dy / z, -dy * x / (z * z)


PAIRS += Right("quotient", quotient, quotient_backward, away((3, 5), (3, 5))).with_slips(
    ({"(z * z)": "z"}, "dz", "power wrong", "z for z² below"),
    ({"-dy * x": "-dy"}, "dz", "factor x forgotten", "x is forgotten above",
     "it should be dy times −(y/z): the factor x is missing"),
    ({"dy / z, -dy * x / (z * z)": "-dy * x / (z * z), dy / z"}, "dx dz", "exchanged",
     "dx and dz are exchanged", "it is the gradient of x: were two gradients exchanged?"),
)


def product(x, z):
    return x * z, (x, z)


def product_backward(dy, cache):
    x, z = cache
    return dy * z, dy * x


PRODUCT = Right("product", product, product_backward, normal((4, 4), (4, 4)))
PAIRS += PRODUCT.with_slips(
    ({"dy * z, dy * x": "dy * x, dy * z"}, "dx dz", "exchanged",  "x and z exchanged"),
    ({"dy * z, ": "dy * x, "},             "dx",    "own factor", "dx has x where z belongs",
     "it is the gradient of z, not that of this input"),
    ({"dy * x": "dy.T * x"},               "dz",    "transposed", "dy is transposed in dz",
     "it is what it would be for a dy that is transposed"),
)
