"""Exercise 32, momentum: how each part is checked."""

import math

from minitransformer.course.exercises.parts import expect, part
from minitransformer.gradcheck import CheckError


@part(10)
def check_steps_until(steps_until):
    hint = "after t steps they have gone 1 + μ + … + μ^(t−1), of 1 / (1 − μ) in all"
    for share, momentum in (
        *((0.8, 0.9), (0.9, 0.9), (0.5, 0.9), (0.95, 0.5), (0.6, 0.5), (0.3, 0.5), (0.9, 0)),
        *((0.75, 0.5), (0.9375, 0.25)),  # reached exactly, also in floats
        *((0.9, 0.99), (0.999, 0.9999)),
    ):
        gone, way, expected = 1.0, 1 / (1 - momentum), 1
        while gone < share * way:
            gone += momentum**expected
            expected += 1
        mistakes = {
            "the step with the gradient is counted, too": expected - 1,
            "a whole number of steps: the first after which it is the share or more": (
                math.log(1 - share) / math.log(momentum) if momentum else 0.0
            ),
            "what is left to go is 1 − share of it, and that is μ^t": (
                math.ceil(math.log(share) / math.log(momentum)) if momentum else 0
            ),
            "it is the way that has this share, not the velocity that has fallen to it": (
                _steps_to(momentum, share)
            ),
            "one step more than needed: the step before is enough": expected + 1,
        }
        steps_until.expect((share, momentum), expected, hint, mistakes)


def _steps_to(momentum, share):
    """Steps after which the velocity is at most this share of the gradient."""
    steps = 1
    while momentum ** (steps - 1) > share:
        steps += 1
    return steps


@part(25)
def check_wandering(wandering):
    for eta, a, s in ((0.1, 2.0, 3.0), (0.3, 0.5, 2.0), (1.5, 1.0, 0.7), (0.6, 3, 1)):
        variance = eta * s**2 / (a * (2 - eta * a))
        mistakes = {
            "the deviation is asked for, the root of the variance": variance,
            "that is for small rates alone: (1 − η a)² is more than 1 − 2 η a": (
                s * math.sqrt(eta / (2 * a))
            ),
            "the noise is multiplied by the rate, too: η s ξ": math.sqrt(variance) / eta,
            "that is what one step adds; θ remembers a part of those before": eta * s,
            "variances add up, deviations do not": s / a,
            "the noise s is a deviation, and s² a variance": math.sqrt(variance / s),
        }
        hint = "a step makes (1 − η a) θ − η s ξ of θ: what does it make of a variance V?"
        wandering.expect((eta, a, s), math.sqrt(variance), hint, mistakes)
    for eta, a in ((2.0, 1.0), (0.5, 6.0)):
        what = f"wandering({eta:g}, {a:g}, 1)"
        if (given := wandering.named(what)(eta, a, 1.0)) != math.inf:
            raise CheckError(
                f"{what} is {given} and should be inf: where η a is 2 or more it grows without end"
            )


@part(45)
def check_best_for_a_ravine(best_for_a_ravine):
    for least, largest in ((1.0, 30.0), (0.5, 2.0), (0.01, 10.0)):
        small, large = math.sqrt(least), math.sqrt(largest)
        root = (large - small) / (large + small)
        of_kappa = (largest - least) / (largest + least)
        what = f"best_for_a_ravine({least:g}, {largest:g})"
        given = best_for_a_ravine.several(2, "(η, μ)", least, largest)
        mistakes = {
            "that is √μ: the roots have the product μ": root,
            "that is the factor of plain descent; √κ, not κ, stands in √μ": of_kappa,
            "√κ, not κ, stands in √μ": of_kappa**2,
            "μ is (√κ − 1)² over (√κ + 1)², not the other way round": 1 / root**2,
        }
        hint = (
            f"the distance can be multiplied by {root:.6g} in a step, and no less, and that is √μ"
        )
        expect(f"μ of {what}", given[1], root**2, hint, mistakes)
        mistakes = {
            "that is best without momentum": 2 / (least + largest),
            "it is η a₁ that is (1 − √μ)², not η a₂": (1 - root) ** 2 / largest,
            "it is η a₂ that is (1 + √μ)², not η a₁": (1 + root) ** 2 / least,
            "√(η a₁) + √(η a₂) is 2, so η has a square": 2 / (small + large),
            "that is where it begins to diverge": 2 * (1 + root**2) / largest,
        }
        hint = (
            "μ is right; with it η a₁ and η a₂ lie at the two ends of where the roots are complex"
        )
        expect(f"η of {what}", given[0], 4 / (small + large) ** 2, hint, mistakes)
