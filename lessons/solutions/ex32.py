"""Solutions of lesson 32, momentum."""

import math


def steps_until(share, momentum):
    """After t steps they have gone 1 + μ + … + μ^(t−1) of 1 / (1 − μ), which is 1 − μ^t.

    With μ = 0.9 nine tenths of the way take 22 steps, with 0.99 they take 230: so long does a
    gradient that was wrong go on, too. Without momentum the first step is the whole way.
    """
    if momentum == 0:
        return 1
    return math.ceil(math.log(1 - share) / math.log(momentum))


def wandering(rate, curvature, noise):
    """Variances of independent terms add up, so V becomes (1 − η a)² V + η² s².

    It stays where V (1 − (1 − η a)²) = η² s², and the bracket is η a (2 − η a). For small rates
    that is η s² / (2 a): a tenth of the rate is a tenth of the variance, and less than a third of
    the way. In a network the loss that this costs, a V / 2, is summed over all directions.
    """
    reach = rate * curvature
    if reach >= 2:
        return math.inf
    return noise * math.sqrt(rate / (curvature * (2 - reach)))


def best_for_a_ravine(least, largest):
    """η a₁ = (1 − √μ)² and η a₂ = (1 + √μ)²: the ends of the level part.

    With a smaller momentum one of them lies outside, on a branch that is worse; with a larger one
    the level part itself is. The roots √(η a₁) = 1 − √μ and √(η a₂) = 1 + √μ have the sum 2, which
    gives η, and the ratio √κ, which gives μ. For κ = 100 it is μ = 0.67, for 1000 it is 0.88: with
    the 0.9 that everybody takes one is prepared for a κ of about 1400.
    """
    small, large = math.sqrt(least), math.sqrt(largest)
    return 4 / (small + large) ** 2, ((large - small) / (large + small)) ** 2
