"""Exercise 25, one vector, or attention: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import Slip, expect_pair, normal, part
from minitransformer.layers.softmax import softmax

B, T, S, D, E = 3, 2, 5, 4, 6
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 0, 1, 1]], dtype=bool)


@part(10)
def check_letters_that_fit(letters_that_fit):
    hint = "there are levels to the power of numbers states; how many words have n letters?"
    for numbers, levels, letters, expected in (
        (58, 2, 12, 16),
        (9, 8, 2, 27),  # exactly: logarithms may say a little less
        (9, 125, 5, 27),
        (1, 2, 3, 0),
    ):
        mistakes = {
            "a state is one choice of all its numbers: multiply": numbers * levels // letters,
            "the last one that fits, not the first that does not": expected + 1,
            "just as many words as states do fit: count in integers": expected - 1,
        }
        letters_that_fit.expect((numbers, levels, letters), expected, hint, mistakes)


@part(45)
def check_bilinear_attention(forward, backward):
    query, states, weight, dcontext = normal(25, (B, T, D), (B, S, E), (D, E), (B, T, E))
    scores = query @ weight @ states.swapaxes(1, 2)
    weights = softmax(np.where(MASK[:, None], scores, -np.inf))[0]
    mistakes = {
        "padding gets the weight 0: before the softmax its score is −∞": softmax(scores)[0]
        @ states,
        "the weights of a word add up to 1 again without padding": (
            (softmax(scores)[0] * MASK[:, None]) @ states
        ),
        "there is no √d here": softmax(np.where(MASK[:, None], scores, -np.inf) / D**0.5)[0]
        @ states,
    }
    as_values = weights.swapaxes(1, 2) @ dcontext
    slip = Slip(
        "dstates: a state is a key as well as a value; what comes through the scores is left out",
        dcontext,
        (None, as_values),
    )
    inputs = query, states, weight, MASK
    return expect_pair(forward, backward, inputs, weights @ states, "", mistakes, slips=[slip])
