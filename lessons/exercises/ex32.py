"""Exercises of lesson 32, momentum. Check yours:  minitransformer check ex32

One parameter θ, or one direction of many: its curvature a, the rate η, the momentum μ.
"""

import math


def steps_until(share, momentum):
    """10 min. How long momentum goes on with a gradient that came once.

    The velocity is 0. Then there is one step with a gradient, and all steps after it have the
    gradient 0. Each step, the one with the gradient too, moves the parameters by the rate times the
    velocity, as ``momentum_update`` does without Nesterov and without decay.

    Args:
        share: of the way that the parameters go in all, if one waits for ever; between 0 and 1.
        momentum: μ, at least 0 and less than 1.

    Returns:
        the number of steps, the one with the gradient counted, after which they have gone this
        share of the way, or more.

    Hint: what is the velocity after the first, the second, the third step? ``math.log`` and
    ``math.ceil`` may help, or a loop.
    """
    raise NotImplementedError


def wandering(rate, curvature, noise):
    """25 min. How far from its minimum a parameter walks, if its gradients are noisy.

    The loss is a θ² / 2. Gradient descent without momentum is given a θ + s ξ for the gradient,
    where ξ is a random number with mean 0 and variance 1, drawn anew in each step and independent
    of all before: so it is with the gradients of batches. After many steps the variance of θ over
    many such walks does not change any more.

    Args:
        rate: η, greater than 0.
        curvature: a, greater than 0.
        noise: s, greater than 0.

    Returns:
        the standard deviation of θ then; ``math.inf`` where it grows without end.

    Hint: what is the variance of θ after a step, if it was V before? And which V stays?
    """
    raise NotImplementedError


def best_for_a_ravine(least, largest):
    """45 min. The rate and the momentum with which a ravine is left fastest.

    Curvatures lie between a₁ and a₂. Along each, a step multiplies the distance by a factor, in
    the long run. The largest of these factors is to be as small as can be.

    Args:
        least, largest: a₁ and a₂, with 0 < a₁ < a₂.

    Returns:
        (η, μ).

    Hint: section 4 says where the factor is √μ, and how it grows beyond. At which two points must
    η a₁ and η a₂ lie? Take roots.
    """
    raise NotImplementedError
