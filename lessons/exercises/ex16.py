"""Exercises of lesson 16, words and errors. Check yours:  minitransformer check ex16

Shapes: N words said, V words of the vocabulary.
"""

import numpy as np


def plausible_shares(right, n, z=2.0):
    """25 min. An error bar that is honest near 0 and 1.

    Of n sentences, ``right`` were translated rightly: r = right / n. Call the true share p. With p,
    a measured share has the standard error √(p (1 − p) / n). The lesson put r in the place of p
    there. So it would say of four right ones of four: 100 % ± 0 %. Instead, take all p from which r
    is at most z standard errors away, those of p itself:

        |r − p| ≤ z √(p (1 − p) / n)

    This is the interval of Wilson (1927).

    Args:
        right: 0 ≤ right ≤ n, a number.
        n: how many there are, at least 1.
        z: how many standard errors.

    Returns:
        (low, high), the smallest and the largest such p.

    Hint: square both sides. At the two ends there is equality: an equation of which degree in p?
    """
    raise NotImplementedError


def best_temperature(logits, labels):
    """45 min. The temperature that makes a model's probabilities as honest as one number can.

    Dividing all logits by τ > 0 changes no answer, since the largest stays the largest, but makes
    the model less sure (τ > 1) or surer (τ < 1). The best τ is the one with the least loss,

        mean over n of −log softmax(z_n / τ)[label_n],

    on sentences that the model was not trained on (Guo and others 2017).

    Args:
        logits: (N, V), z. A constant added to a row of them, however large, changes nothing.
        labels: (N,) integers, the right words.

    Returns:
        τ, right to three digits; it lies between 0.02 and 50.

    Hint: with β = 1 / τ the logits are β z, and the loss is convex in β. Its slope is the mean of
    Σ_v p_v z_v − z_label: derive that, and find where it is 0.
    """
    raise NotImplementedError
