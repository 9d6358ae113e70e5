"""How linear map, ReLU, embedding, positions, LayerNorm, dropout and what they form are checked."""

import numpy as np

from minitransformer.cases.case import SOURCE, B, D, F, T, V
from minitransformer.course.exercises.own.common import (
    CANCELLED,
    FAR,
    FAR_OFF,
    P,
    also_right,
    expect_any_axes,
    expect_right,
    expect_y,
    float64_note,
    generator,
    gradients_of,
    with_dropout,
    y_of,
)
from minitransformer.course.exercises.parts import (
    Answer,
    check_gradients,
    expect,
    likely,
    normal,
    part,
)
from minitransformer.gradcheck import CheckError
from minitransformer.layers import positional_encoding as positions
from minitransformer.layers.dropout import dropout
from minitransformer.layers.embedding import embedding, embedding_backward
from minitransformer.layers.feed_forward import feed_forward
from minitransformer.layers.layer_norm import layer_norm
from minitransformer.layers.linear import linear
from minitransformer.layers.residual import residual, residual_backward

NORM = "y = γ (x − μ) / √(σ² + ε) + β, with the mean μ and the variance σ² of each row"


@part(25, "02")
def check_linear(forward, backward):
    x, weight, bias = inputs = normal(2, (B, T, D), (D, F), (F,))
    for what, b in (("y without a bias", None), ("y", bias)):
        expected, _ = linear(x, weight, b)
        expect_y(forward, (x, weight, b), expected, what, "y = x W + b")
    expect_right(forward, backward, inputs, (x, weight, None))
    _, cache = forward.y_and_cache(x, weight, None)
    wanted = ("dx", "dweight", "dbias")
    *_, dbias = gradients_of(backward, np.ones((B, T, F)), cache, wanted)
    if dbias is not None:
        raise CheckError("without a bias dbias, which linear_backward returns, must be None")
    return also_right(forward, backward, inputs, (B, T))


@part(10, "02")
def check_relu(forward, backward):
    (x,) = normal(2, (B, T, D))
    x += 0.1 * np.sign(x)  # none within 0.1 of the kink
    hint = "negative entries become 0, the others stay"
    expect_y(forward, (x,), np.maximum(x, 0), hint=hint)
    hint = "the slope is 1 where x is positive and 0 where it is not, whatever dy is"
    expect_right(forward, backward, (x,), hints=[hint])
    return also_right(forward, backward, (x,), (B, T))


@part(25, "05")
def check_embedding(forward, backward):
    weight, dx = normal(5, (V, D), (*SOURCE.shape, D))
    x, expected_cache = embedding(SOURCE, weight)
    given, cache = forward.y_and_cache(SOURCE, weight)
    mistakes = {"multiply by √D": weight[SOURCE], "by √D, not by D": weight[SOURCE] * D}
    mistakes["by the root of the width D, not of V"] = weight[SOURCE] * np.sqrt(V)
    expect("x", given, x, "x = √D · E[ids]", mistakes)

    dweight = backward.quietly(dx, cache)
    expected = embedding_backward(dx, expected_cache)
    last_one = np.zeros_like(weight)
    last_one[SOURCE] = np.sqrt(D) * dx
    mistakes = {
        "an id that stands at several places gets the sum of their gradients; += keeps one of "
        "them, np.add.at adds all": last_one,
        "x is √D times the row, and so its gradient is √D times as large": expected / np.sqrt(D),
    }
    expect("dweight", dweight, expected, mistakes=mistakes)

    def gradients(dx, cache):
        return None, backward.function(dx, cache)

    of_both, inputs = Answer(backward.name, gradients), (SOURCE, weight)
    expect_right(forward, of_both, inputs)
    return also_right(forward, of_both, inputs, SOURCE.shape)


@part(25, "06")
def check_positional_encoding(forward, sinusoidal_encoding, backward):
    for length, d_model in ((7, 6), (40, 16)):
        table = positions.sinusoidal_encoding(length, d_model)
        sines, cosines = table[:, 0::2], table[:, 1::2]
        later = positions.sinusoidal_encoding(length + 1, d_model)[1:]
        angles = np.arange(length)[:, None] * 10000.0 ** (-np.arange(d_model // 2) / d_model)
        slow = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, d_model)
        mistakes = {
            "column 2i has the sine and column 2i + 1 the cosine; yours has all sines first": (
                np.concatenate([sines, cosines], axis=1)
            ),
            "the sine comes before the cosine": (
                np.stack([cosines, sines], axis=-1).reshape(length, d_model)
            ),
            "positions count from 0": later,
            "the exponent of column 2i is 2i/D, not i/D": slow,
        }
        sinusoidal_encoding.expect((length, d_model), table, mistakes=mistakes)

    rng = np.random.default_rng(6)
    x, table = rng.standard_normal((B, T, D)), rng.standard_normal((T + 4, D))
    y = y_of(forward, x, table)
    mistakes = {
        "add the first T rows": x + table[-T:],
        "the scaling by √D has been done by the embedding": x * np.sqrt(D) + table[:T],
    }
    expect("y", y, x + table[:T], "y = x + the first T rows of the table", mistakes)
    expect_right(Answer(forward.name, lambda x: forward.function(x, table)), backward, (x,))
    return float64_note(forward, backward, (x, table))


@part(45, "07")
def check_layer_norm(forward, backward):
    rng = np.random.default_rng(7)
    x = 2 * rng.standard_normal((B, T, D)) + 1
    gamma, beta = rng.uniform(0.5, 1.5, D), rng.uniform(-0.5, 0.5, D)
    for epsilon in (1e-5, 0.5):
        inputs = x, gamma, beta, epsilon
        expected, _ = layer_norm(*inputs)
        what, mistakes = f"y for epsilon={epsilon:g}", _wrong_norms(*inputs)
        expect_y(forward, inputs, expected, what, NORM, mistakes)
    far = x + FAR, gamma, beta
    expect_y(forward, far, layer_norm(*far)[0], FAR_OFF, CANCELLED)
    inputs, hint = (np.ones((2, D)), gamma, beta), "ε keeps σ from being 0 where all are equal"
    expect_y(forward, inputs, [beta, beta], "y of rows of ones", hint)
    expect_right(forward, backward, *((x, gamma, beta, epsilon) for epsilon in (1e-5, 0.5)))
    return also_right(forward, backward, (x, gamma, beta), (B, T))


def _wrong_norms(x, gamma, beta, epsilon):
    """What plausible mistakes make of it, by what to say of them."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    sigma = np.sqrt(variance + epsilon)
    of_sample = np.sqrt(centred.var(axis=-1, ddof=1, keepdims=True) + epsilon)
    default = np.sqrt(variance + 1e-5)
    return {
        "ε is added to the variance, under the root": (
            gamma * centred / (np.sqrt(variance) + epsilon) + beta
        ),
        "ε is missing: it is added to the variance": gamma * centred / np.sqrt(variance) + beta,
        "the variance is the mean of the D squares, divided by D and not by D − 1": (
            gamma * centred / of_sample + beta
        ),
        "divide by σ, the root": gamma * centred / (variance + epsilon) + beta,
        "subtract the mean before dividing by σ": gamma * x / sigma + beta,
        "β is added after the gain, which does not scale it": gamma * (centred / sigma + beta),
        "use the epsilon that is given": gamma * centred / default + beta,
        "mean and variance are those of a row, over the last axis": (
            gamma * (x - x.mean()) / np.sqrt(x.var() + epsilon) + beta
        ),
    }


@part(25, "02")
def check_dropout(forward, backward):
    x = np.random.default_rng(12).standard_normal((B, T, D)) + 3
    for p, rng, what in ((0.0, generator(), "p=0"), (0.4, None, "rng=None")):
        y, cache = forward.y_and_cache(x, p, rng)
        expect(f"y with {what}", y, x, "nothing is dropped out there, and nothing scaled")
        dx = backward.quietly(x, cache)
        expect(f"dx with {what}", dx, x, "y is x there, and dx is dy")
        if rng is not None and rng.random() != generator().random():
            raise CheckError("with p=0 dropout must draw nothing from rng")

    rng = generator()
    y = y_of(forward, x, P, rng)
    expected, (keep, scale) = dropout(x, P, generator())
    wide = generator().random(x.shape)
    mistakes = {
        "what is kept is scaled by 1 / (1 − p), so that the mean stays": x * keep,
        "an entry is dropped with probability p: keep where the random number is p or more": (
            x * ~keep * scale
        ),
        "scale by 1 / (1 − p), not by 1 / p": x * keep / P,
        "scale in training, by 1 / (1 − p), so that nothing is to be done later": (
            x * keep * (1 - P)
        ),
        "draw with dtype=np.float32, as the docstring says: float64 draws others": (
            x * (wide >= P) * scale
        ),
    }
    expect("y", y, expected, "y = x · keep / (1 − p)", mistakes)
    reference = generator()
    dropout(x, P, reference)
    if rng.random() != reference.random():
        raise CheckError("dropout must draw from rng once, as many numbers as x has entries")

    seeded = with_dropout(forward)
    _, cache = seeded.y_and_cache(x)
    dx = backward.quietly(x, cache)
    mistakes = {f"{scale:.6g} is 1 / (1 − p): what is kept is scaled here, too": x * keep}
    hint = "what was dropped out in the forward gets no gradient: keep its mask in the cache"
    hint = likely(dx, mistakes, hint)
    expect_right(seeded, backward, (x,), hints=[hint])
    return also_right(seeded, backward, (x,), (B, T))


@part(10, "10")
def check_residual(forward, backward):
    x, h = normal(10, (B, T, D), (B, T, D))
    hint = "z = x + h, and nothing is normalised here"
    expect_y(forward, (x, h), x + h, "z", hint)
    mistakes = {
        "the dropout is of h alone": dropout(x + h, P, generator())[0],
        "the dropout is of h, not of x": dropout(x, P, generator())[0] + h,
        "there is dropout of h, with p and rng": x + h,
    }
    expected, wanted_cache = residual(x, h, P, generator())
    seeded = with_dropout(forward)
    expect_y(seeded, (x, h), expected, "z with dropout", "z = x + Dropout(h)", mistakes)
    expect_right(forward, backward, (x, h))
    (dz,) = normal(100, x.shape)
    _, cache = seeded.y_and_cache(x, h)
    dx, dh = gradients_of(backward, dz, cache, ("dx", "dh"))
    of_right = "without dropout it is right: "
    expect("dx with dropout", dx, dz, f"{of_right}x does not go through the dropout")
    hint = f"{of_right}dh goes back through dropout"
    expect("dh with dropout", dh, residual_backward(dz, wanted_cache)[1], hint)
    expect_any_axes(forward, backward, (x, h), (B, T))
    return check_gradients(seeded, backward, (x, h))


@part(25, "02")
def check_feed_forward(forward, backward):
    rng = np.random.default_rng(11)
    x, w_1, b_1, w_2, b_2 = inputs = rng.standard_normal((B, T, D)), *network_weights(rng)
    expected, _ = feed_forward(*inputs)
    mistakes = {
        "the ReLU stands between the two maps": (x @ w_1 + b_1) @ w_2 + b_2,
        "there is no ReLU after the second map": np.maximum(expected, 0),
    }
    hint = "y = max(0, x W_1 + b_1) W_2 + b_2"
    expect_y(forward, inputs, expected, "y", hint, mistakes)
    after = "the dropout comes after the ReLU, not after the second map"
    mistakes = {
        "there is dropout after the ReLU, with p and rng": expected,
        after: dropout(expected, P, generator())[0],
    }
    expected, _ = feed_forward(*inputs, P, generator())
    seeded, hint = with_dropout(forward), "the dropout is that of what the ReLU returns"
    expect_y(seeded, inputs, expected, "y with dropout", hint, mistakes)
    hint = "the second map, the dropout, the ReLU and the first map, each with the cache it gave"
    expect_right(forward, backward, inputs, hints=[hint])
    hint = "without dropout it is right: dh goes back through dropout, too"
    expect_right(seeded, backward, inputs, hints=[hint])
    expect_any_axes(forward, backward, inputs, (B, T))


def network_weights(rng):
    """w_1, b_1, w_2, b_2 of a network with no ReLU near its kink: |x W_1| < 0.9 and b_1 = ±1.

    That holds for rows x no longer than 5 √D, see :mod:`minitransformer.cases.case`.
    """
    w_1 = rng.standard_normal((D, F))
    w_1 *= 0.9 / (5 * np.sqrt(D)) / np.sqrt((w_1**2).sum(axis=0))
    b_1 = np.where(np.arange(F) % 3, 1.0, -1.0)
    return w_1, b_1, rng.standard_normal((F, D)), rng.standard_normal(D)
