"""How Adam's update, clipping and the learning rate are checked."""

import math

import numpy as np

from minitransformer.course.exercises.parts import expect, likely, part
from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.pair import unheard
from minitransformer.optim import adam


@part(25, "12")
def check_adam_update(adam_update):
    rng = np.random.default_rng(12)
    data, m, v = rng.standard_normal(6), rng.standard_normal(6), rng.random(6)
    for t, scale in ((2, 1.0), (3, 0.5), (1, 1.0)):  # where m is 0, mistakes look alike: so last
        grad = rng.standard_normal(6)
        if t == 1:
            m[:] = v[:] = 0
        constants = 0.1, t, 0.8, 0.95, 0.02  # a large ε, to show where it is added
        wanted = [array.copy() for array in (data, grad, m, v)]
        adam.adam_update(*wanted, *constants, scale)
        before = data.copy(), m.copy(), v.copy()
        given_grad = grad.copy()
        with unheard():
            adam_update.writing(data, given_grad, m, v, *constants, scale)
        if not np.array_equal(given_grad, grad):
            raise CheckError("adam_update wrote to grad, which is to be left as it is")
        if all(map(np.array_equal, before, (data, m, v))):
            raise CheckError(
                "adam_update changed nothing: write to the arrays that are given, as m *= beta_1 "
                "and data -= ... do"
            )
        _compare(t, scale, (data, m, v), wanted, before, grad, constants)


def _compare(t, scale, given, wanted, before, grad, constants):
    """Compare the moments first, as θ is wrong where they are."""
    eta, _, beta_1, beta_2, epsilon = constants
    data_before, m_before, v_before = before
    wanted_data, _, wanted_m, wanted_v = wanted
    g = scale * grad

    def corrected(t):
        return wanted_m / (1 - beta_1**t), wanted_v / (1 - beta_2**t)

    m_hat, v_hat = corrected(t)
    m_later, v_later = corrected(t + 1)
    unscaled = "the gradient is scale · grad, in both moments"
    kept = "{} itself stays: what is divided by {} is for this step alone".format
    mistakes = {
        "write to m itself, as in m *= beta_1": m_before,
        unscaled: beta_1 * m_before + (1 - beta_1) * grad,
        "β₁ weighs the old mean, and 1 − β₁ the new gradient": (1 - beta_1) * m_before + beta_1 * g,
        "m is a mean: the new gradient counts 1 − β₁": beta_1 * m_before + g,
        kept("m", "1 − β₁ᵗ"): m_hat,
    }
    expect(f"m after step {t}", given[1], wanted_m, mistakes=mistakes)
    mistakes = {
        "write to v itself, as in v *= beta_2": v_before,
        unscaled: beta_2 * v_before + (1 - beta_2) * grad**2,
        "and there by its square": beta_2 * v_before + (1 - beta_2) * scale * grad**2,
        "v is the mean of the squares of the gradient": beta_2 * v_before + (1 - beta_2) * g,
        "β₂ weighs the old mean, and 1 − β₂ the new square": (
            (1 - beta_2) * v_before + beta_2 * g**2
        ),
        kept("v", "1 − β₂ᵗ"): v_hat,
    }
    expect(f"v after step {t}", given[2], wanted_v, mistakes=mistakes)

    def step(m_hat, root):
        return data_before - eta * m_hat / root

    mistakes = {
        "write to data itself, as in data -= ...": data_before,
        "the moments start at 0 and are too small: divide m by 1 − β₁ᵗ and v by 1 − β₂ᵗ": (
            step(wanted_m, np.sqrt(wanted_v) + epsilon)
        ),
        "t is the number of this step already, 1 at the first": (
            step(m_later, np.sqrt(v_later) + epsilon)
        ),
        "ε is added to the root, not under it": step(m_hat, np.sqrt(v_hat + epsilon)),
        "v is to be divided by 1 − β₂ᵗ, too": step(m_hat, np.sqrt(wanted_v) + epsilon),
        "m is to be divided by 1 − β₁ᵗ, too": step(wanted_m, np.sqrt(v_hat) + epsilon),
        "divide by the root of v": step(m_hat, v_hat + epsilon),
        "a step goes against the gradient": step(-m_hat, np.sqrt(v_hat) + epsilon),
    }
    hint = "in 1 − β₁ᵗ and 1 − β₂ᵗ t is the number of this step, from 1"
    expect(f"data after step {t}", given[0], wanted_data, hint, mistakes)


@part(10, "13")
def check_clip_scale(clip_scale, gradient_norm):
    grad = np.random.default_rng(12).standard_normal(9)
    norm = gradient_norm.quietly(grad)
    mistakes = {
        "it is the root of the sum of squares": grad @ grad,
        "it is a sum of squares, not their mean": np.sqrt((grad**2).mean()),
    }
    expect("gradient_norm(grad)", norm, np.sqrt(grad @ grad), mistakes=mistakes)
    below = "up to max_norm the gradient is left alone: the factor is 1"
    above = "it makes the norm max_norm: max_norm / norm"
    for norm, max_norm, scale, hint in (
        (2.0, 0.5, 0.25, above),
        (0.5, 2.0, 1.0, below),
        (2.0, 2.0, 1.0, below),
        (0.0, 2.0, 1.0, below),
        (2.0, math.inf, 1.0, below),
    ):
        what = f"clip_scale({norm:g}, {max_norm:g})"
        expect(what, clip_scale.named(what).quietly(norm, max_norm), scale, hint)


@part(10, "12")
def check_noam(noam, linear_decay):
    d_model, warmup = 64, 16
    steps = np.array([1, 7, 16, 80])
    rates = [noam.quietly(step, d_model, warmup) for step in steps.tolist()]
    rising, falling = steps * warmup**-1.5, steps**-0.5
    smaller = np.minimum(rising, falling)
    mistakes = {
        "the smaller of the two counts": d_model**-0.5 * np.maximum(rising, falling),
        "is the factor D^−½ in it?": smaller,
    }
    hint = likely(rates, mistakes, "it is the smaller of step^−½ and step · w^−1.5, times D^−½")
    for step, rate, expected in zip(steps, rates, d_model**-0.5 * smaller, strict=True):
        expect(f"noam({step}, {d_model}, {warmup})", rate, expected, hint)
    for step, expected, hint in (
        (4, 0.05, "it rises in a straight line, to peak at the end of the warm-up"),
        (16, 0.2, "it is peak at the end of the warm-up"),
        (56, 0.1, "it falls in a straight line from the end of the warm-up to total_steps"),
        (96, 0.0, "it is 0 at total_steps"),
        (100, 0.0, "it is never below 0"),
    ):
        linear_decay.expect((step, 0.2, 16, 96), expected, hint)
