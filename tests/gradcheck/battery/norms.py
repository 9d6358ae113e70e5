"""Normalisations, over features, batches, groups and weights."""

import numpy as np

from battery.table import normal, right

PAIRS = []


def gained(x_shape, *, width):
    """x of that shape, a gain between 0.5 and 1.5 and a shift, each of that width."""

    def inputs(rng):
        gamma = rng.uniform(0.5, 1.5, width)
        return rng.standard_normal(x_shape), gamma, rng.standard_normal(width)

    return inputs


def standardise(x):
    centred = x - x.mean(-1, keepdims=True)
    sigma = np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    return centred / sigma, (centred / sigma, sigma)


def standardise_backward(dy, cache):
    x_hat, sigma = cache
    mean = dy.mean(-1, keepdims=True)
    overlap = (dy * x_hat).mean(-1, keepdims=True)
    return (dy - mean - x_hat * overlap) / sigma


PAIRS += right("standardised rows", standardise, normal((3, 7))).with_slips(
    ({" - mean": ""}, "mean term missing"),
    ({" - x_hat * overlap": ""}, "sigma term missing"),
    ({" - mean - x_hat * overlap": ""}, "statistics as constants"),
    ({" / sigma": ""}, "scale forgotten"),
    ({"- mean": "+ mean"}, "sign of a term"),
    ({"mean = dy.mean": "mean = dy.sum"}, "term wrong"),
    ({"dy.mean(-1, keepdims=True)": "dy.mean(0)"}, "axis wrong"),
)


def layer_norm(x, gamma, beta):
    x_hat, (_, sigma) = standardise(x)
    return gamma * x_hat + beta, (x_hat, sigma, gamma)


def layer_norm_backward(dy, cache):
    x_hat, sigma, gamma = cache
    dx_hat = dy * gamma
    mean = dx_hat.mean(-1, keepdims=True)
    overlap = (dx_hat * x_hat).mean(-1, keepdims=True)
    dx = (dx_hat - mean - x_hat * overlap) / sigma
    rows = tuple(range(dy.ndim - 1))
    return dx, (dy * x_hat).sum(rows), dy.sum(rows)


PAIRS += right("layer norm", layer_norm, gained((3, 5, 7), width=7)).with_slips(
    ({"dx_hat = dy * gamma": "dx_hat = dy", "dx = (": "dx = gamma * ("}, "gain misplaced",
     "a gain such as gamma is multiplied after the mean terms; it has to"),
    ({"dy * gamma": "dy"}, "gain missing"),
    ({"dy * gamma": "dy * gamma * gamma"}, "gain twice", "the factor `gamma` comes twice"),
    ({"dy * gamma": "dy / gamma"}, "upside down", "it multiplies where it has to divide"),
    ({" - mean": ""}, "mean term missing"),
    ({" - x_hat * overlap": ""}, "sigma term missing"),
    ({" - mean - x_hat * overlap": ""}, "statistics as constants"),
    ({"(dy * x_hat).sum(rows)": "(dy * x_hat * sigma).sum(rows)"}, "input not normalised"),
    ({"dy.sum(rows)": "dy.mean(rows)"}, "mean in place of sum",
     "it is 15 times too small: 15 is N, the number of rows"),
    ({"(dy * x_hat).sum(rows), dy.sum(rows)": "dy.sum(rows), (dy * x_hat).sum(rows)"}, "exchanged"),
    ({"(dy * x_hat).sum(rows)": "(dx_hat * x_hat).sum(rows)"}, "gain twice"),
    ({"x_hat * overlap": "overlap"}, "term wrong",
     "both mean(dx̂) and x̂ mean(dx̂ x̂), as in LayerNorm, are missing or"),
)
PAIRS += right("layer norm, 4 × 4", layer_norm, gained((4, 4), width=4)).with_slips(
    ({"(dy * x_hat).sum(rows)": "(dy * x_hat).sum(1)"}, "axis wrong"),
)


def batch_norm(x, gamma, beta):
    centred = x - x.mean(0)
    sigma = np.sqrt((centred * centred).mean(0) + 1e-5)
    x_hat = centred / sigma
    return gamma * x_hat + beta, (x_hat, sigma, gamma)


def batch_norm_backward(dy, cache):
    x_hat, sigma, gamma = cache
    dgamma, dbeta = (dy * x_hat).sum(0), dy.sum(0)
    count = len(dy)
    dx = gamma / sigma * (dy - dbeta / count - x_hat * dgamma / count)
    return dx, dgamma, dbeta


PAIRS += right("batch norm", batch_norm, gained((5, 3), width=3)).with_slips(
    ({"- dbeta / count": "- dbeta"}, "term wrong"),
    ({" - dbeta / count - x_hat * dgamma / count": ""}, "statistics as constants"),
    ({" - x_hat * dgamma / count": ""}, "sigma term missing"),
    ({" - dbeta / count": ""}, "mean term missing", "in `x.mean(0)`"),
    ({"count = len(dy)": "count = len(dy) - 1"}, "term wrong",
     "both mean(dx̂) and x̂ mean(dx̂ x̂), as in batch norm, are missing or"),
    ({"gamma / sigma": "1 / sigma"}, "gain missing"),
    ({"(dy * x_hat).sum(0), dy.sum(0)": "(dy * x_hat).mean(0), dy.mean(0)", "len(dy)": "1"},
     "mean in place of sum"),
)


def image_norm(x, gamma, beta):
    """Batch norm of images (B, C, height, width), a mean and a gain for each channel."""
    x_hat, cache = batch_norm(by_channel(x), gamma, beta)
    return to_images(x_hat, x.shape), cache


def image_norm_backward(dy, cache):
    dx, dgamma, dbeta = batch_norm_backward(by_channel(dy), cache)
    return to_images(dx, dy.shape), dgamma, dbeta


def by_channel(x):
    return np.moveaxis(x, 1, -1).reshape(-1, x.shape[1])


def to_images(rows, shape):
    batch, channels, height, width = shape
    return np.moveaxis(rows.reshape(batch, height, width, channels), -1, 1)


PAIRS += right("batch norm of images", image_norm, gained((2, 3, 4, 5), width=3)).with_slips(
    ({"dgamma, dbeta\n": "dgamma / 20, dbeta / 20\n"}, "factor of a size"),
    ({"to_images(dx,": "to_images(dx / cache[2],"}, "gain missing",
     "the factor `gamma` is forgotten"),
)


def rms_norm(x, gain):
    scale = 1 / np.sqrt((x * x).mean(-1, keepdims=True))
    return gain * x * scale, (x, gain, scale)


def rms_norm_backward(dy, cache):
    x, gain, scale = cache
    dx_hat = dy * gain
    x_hat = x * scale
    dx = scale * (dx_hat - x_hat * (dx_hat * x_hat).mean(-1, keepdims=True))
    return dx, (dy * x_hat).sum(0)


PAIRS += right("rms norm", rms_norm,
               lambda rng: (rng.standard_normal((4, 6)), rng.uniform(0.5, 1.5, 6))).with_slips(
    ({" - x_hat * (dx_hat * x_hat).mean(-1, keepdims=True)": ""}, "statistics as constants"),
    ({"x_hat).mean": "x_hat).sum"}, "term wrong"),
    ({"x_hat * (dx_hat": "x * (dx_hat"}, "input not normalised",
     "a multiple of x in each row, such as x mean(dy x) in RMSNorm, is"),
    ({"dx_hat = dy * gain": "dx_hat = dy", "scale * (": "gain * scale * ("}, "gain misplaced"),
    ({"(dy * x_hat).sum(0)": "(dy * x).sum(0)"}, "input not normalised"),
    ({"scale * (": "("}, "scale forgotten"),
    ({"dx_hat - x_hat": "dx_hat - dx_hat.mean(-1, keepdims=True) - x_hat"}, "term too many",
     "a constant in each row, such as mean(dx̂) in LayerNorm, is missing or"),
)


def group_norm(x):
    """Two groups of channels, each standardised: x (B, C, T)."""
    batch, channels, length = x.shape
    y, cache = standardise(x.reshape(batch, 2, channels // 2 * length))
    return y.reshape(x.shape), cache


def group_norm_backward(dy, cache):
    batch, channels, length = dy.shape
    dy_groups = dy.reshape(batch, 2, channels // 2 * length)
    return standardise_backward(dy_groups, cache).reshape(dy.shape)


PAIRS += right("group norm", group_norm, normal((3, 4, 5))).with_slips(
    ({"dy_groups, cache).reshape(dy.shape)":
      "dy, (cache[0].reshape(dy.shape), cache[1].repeat(2, 1)))"}, "axis wrong"),
    ({"standardise_backward(dy_groups, cache)": "(dy_groups / cache[1])"},
     "statistics as constants"),
)


def weight_norm(x, v, g):
    """x @ w with w = g v / ‖v‖, a length g for each column of v."""
    length = np.sqrt((v * v).sum(0))
    w = g * v / length
    return x @ w, (x, w, v / length, length, g)


def weight_norm_backward(dy, cache):
    x, w, unit, length, g = cache
    dw = x.T @ dy
    dg = (dw * unit).sum(0)
    dv = g / length * (dw - unit * dg)
    return dy @ w.T, dv, dg


PAIRS += right("weight norm", weight_norm, normal((5, 3), (3, 4), (4,))).with_slips(
    ({" - unit * dg": ""}, "statistics as constants"),
    ({"g / length *": "1 / length *"}, "gain missing",
     "each feature is off by a factor of its own: the factor g is missing"),
    ({"g / length *": "g *"}, "scale forgotten"),
    ({"(dw * unit)": "(dw * w)", "- unit * dg": "- unit * (dw * unit).sum(0)"}, "gain twice"),
)


def unit_rows(x):
    length = np.sqrt((x * x).sum(-1, keepdims=True))
    return x / length, (x / length, length)


def unit_rows_backward(dy, cache):
    y, length = cache
    return (dy - y * (dy * y).sum(-1, keepdims=True)) / length


PAIRS += right("rows of length 1", unit_rows, normal((4, 4))).with_slips(
    ({"y).sum": "y).mean"}, "term wrong", "is 4 times too small"),
    ({"sum(-1": "sum(0"}, "axis wrong"),
)


def cosine(x, z):
    (u, u_cache), (v, v_cache) = unit_rows(x), unit_rows(z)
    return (u * v).sum(-1), (u, v, u_cache, v_cache)


def cosine_backward(dy, cache):
    u, v, u_cache, v_cache = cache
    du, dv = dy[:, None] * v, dy[:, None] * u
    return unit_rows_backward(du, u_cache), unit_rows_backward(dv, v_cache)


PAIRS += right("cosine of rows", cosine, normal((3, 5), (3, 5))).with_slips(
    ({"unit_rows_backward(du, u_cache)": "du / u_cache[1]"}, "statistics as constants"),
    ({"* v, dy": "* u, dy", "[:, None] * u\n": "[:, None] * v\n"}, "zero"),
    ({"(du, u_cache)": "(du, v_cache)"}, "cache of the other",
     "it is zero everywhere, but for rounding"),
)
