"""Exercise 16, words and errors: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import array_of, expect, likely, part
from minitransformer.gradcheck import CheckError
from minitransformer.layers.softmax import softmax

N, V = 400, 7


@part(25)
def check_plausible_shares(plausible_shares):
    for right, n, z in ((37, 41, 2.0), (4, 4, 2.0), (0, 9, 2.0), (11, 30, 1.5)):
        r, c = right / n, z**2 / n
        expected = np.sort(np.roots([1 + c, -2 * r - c, r**2]).real)
        asked = f"plausible_shares({right}, {n}, {z})"
        given = plausible_shares.quietly(right, n, z)
        with_r = z * np.sqrt(r * (1 - r) / n)
        mistakes = {
            "has the standard error of the measured share r; it should be that of p": (
                [r - with_r, r + with_r]
            ),
            "has its ends swapped: first the low one, then the high one": expected[::-1],
        }
        if mistake := likely(given, mistakes):
            raise CheckError(f"{asked} {mistake}")
        expect(asked, given, expected, "what is (r − p)² at the two ends?", tolerance=1e-6)


@part(45)
def check_best_temperature(best_temperature):
    rng = np.random.default_rng(15)
    for scale in (1.0, 0.1, 6.0):
        honest = 1.5 * rng.standard_normal((N, V))
        p, _ = softmax(honest)
        labels = (p.cumsum(axis=-1) < rng.random((N, 1))).sum(axis=-1).clip(max=V - 1)
        logits = scale * honest + 1000 * rng.standard_normal((N, 1))
        small = logits - logits.max(axis=-1, keepdims=True)
        expected = _least(small, labels)
        given = best_temperature.quietly(logits, labels)
        tau = array_of(given, ())
        if tau is not None and np.isnan(tau):
            raise CheckError(
                "best_temperature is NaN: exp of a large number overflows; subtract the row's "
                "largest logit first"
            )
        if tau and np.isclose(1 / tau, expected, 2e-3) and not np.isclose(tau, expected, 2e-3):
            raise CheckError(
                f"best_temperature is {tau:.4g}, and 1 divided by it would be right: logits are "
                "divided by τ, and multiplied by β"
            )
        hint = "is the loss least there, that of the labels and not of the largest logits?"
        if tau is not None and not np.isclose(tau, expected, 0.1):
            of_small = array_of(best_temperature.quietly(small, labels), ())
            if of_small is not None and np.isclose(of_small, expected, 0.1):
                hint = (
                    f"with the largest logit of each row subtracted first you say {of_small:.4g}: "
                    "exp of a large number overflows"
                )
        expect("best_temperature(logits, labels)", given, expected, hint, tolerance=2e-3)


def _least(z, labels):
    """The best temperature, by halving the interval in which the slope of the loss changes sign."""
    low, high = 1e-3, 1e3
    for _ in range(80):
        beta = np.sqrt(low * high)
        p, _ = softmax(beta * z)
        slope = ((p * z).sum(axis=-1) - z[np.arange(len(z)), labels]).mean()
        low, high = (low, beta) if slope > 0 else (beta, high)
    return 1 / np.sqrt(low * high)
