"""Softmax and what is made of it."""

import numpy as np

from battery.table import normal, right

PAIRS = []


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    w = e / e.sum(-1, keepdims=True)
    return w, w


def softmax_backward(dw, w):
    return w * (dw - (dw * w).sum(-1, keepdims=True))


PAIRS += right("softmax", softmax, normal((3, 4, 5))).with_slips(
    ({" - (dw * w).sum(-1, keepdims=True)": ""}, "sum term missing"),
    ({"(dw - (dw * w).sum(-1, keepdims=True))": "dw * (1 - w)"}, "diagonal only",
     "is taken to be h (1 − h), where z goes in and h comes out"),
    ({"w).sum": "w).mean"}, "term wrong",
     "a multiple of y in each row, such as y Σ(dy y) in softmax, is missing"),
    ({"(dw * w).sum": "dw.sum"}, "term wrong"),
    ({"sum(-1": "sum((1, 2)"}, "axis wrong",
     "the sum Σ(dy y) runs over axes 1, 2; it has to run over axis 2"),
    ({"dw - (": "dw + ("}, "sign of a term"),
    ({"w * (dw -": "(dw -"}, "factor y forgotten"),
)
PAIRS += right("softmax, 4 × 4", softmax, normal((4, 4))).with_slips(
    ({"sum(-1": "sum(0"}, "axis wrong", "runs over axis 0; it has to run over axis 1"),
    ({"w * (dw": "w / len(w) * (dw"}, "factor of the batch"),
)


def log_softmax(x):
    z = x - x.max(-1, keepdims=True)
    y = z - np.log(np.exp(z).sum(-1, keepdims=True))
    return y, y


def log_softmax_backward(dy, y):
    return dy - np.exp(y) * dy.sum(-1, keepdims=True)


PAIRS += right("log softmax", log_softmax, normal((5, 3))).with_slips(
    ({" * dy.sum(-1, keepdims=True)": ""}, "term wrong",
     "a part of it does not change with dy: dy is forgotten in one of its"),
    ({"dy.sum(-1, keepdims=True)": "dy"}, "diagonal only",
     "entry by entry, but each output depends"),
    ({"np.exp(y)": "y"}, "term wrong"),
    ({"dy.sum": "dy.mean"}, "term wrong"),
    ({" - np.exp(y) * dy.sum(-1, keepdims=True)": ""}, "term missing"),
)


def tempered(x, tau):
    w, _ = softmax(x / tau)
    return w, (x, tau, w)


def tempered_backward(dw, cache):
    x, tau, w = cache
    dz = softmax_backward(dw, w)
    return dz / tau, -(dz * x).sum() / tau**2


TEMPERED = right("softmax with a temperature", tempered, normal((4, 6), beside=[np.array(1.7)]))
PAIRS += TEMPERED.with_slips(
    ({"dz / tau": "dz"}, "factor", "it is 1.7 times too large: 1.7 is tau"),
    ({"tau**2": "tau"}, "factor"),
)


def masked_softmax(x, mask):
    w, _ = softmax(np.where(mask, x, -1e30))
    return w, (w, mask)


def masked_softmax_backward(dw, cache):
    w, _ = cache
    return softmax_backward(dw, w)


MASKED = normal((3, 5), beside=[np.arange(5) < np.array([[5], [3], [2]])])
PAIRS += right("masked softmax", masked_softmax, MASKED).with_slips(
    ({"dw, w)": "dw, w) + 0.1 * ~cache[1]"}, "mask missing",
     "a term without dy leaks to where it should be zero"),
    ({"softmax_backward(dw, w)": "softmax_backward(dw, w) * ~cache[1]"}, "zero"),
)


def log_sum_exp(x):
    peak = x.max(-1)
    return peak + np.log(np.exp(x - peak[:, None]).sum(-1)), x


def log_sum_exp_backward(dy, x):
    return dy[:, None] * softmax(x)[0]


PAIRS += right("log of a sum of exponentials", log_sum_exp, normal((3, 4))).with_slips(
    ({"softmax(x)[0]": "np.exp(x)"}, "inner derivative missing", "the factor exp(y) is too many"),
    ({"softmax(x)[0]": "(x == x.max(-1, keepdims=True))"}, "derivative of another function"),
)
