"""Exercises of lesson 15, looking inside. Check yours:  minitransformer check ex15

Shapes: B batch, T length that asks, S length that is asked, H heads.
"""

import numpy as np


def attention_entropy(weights):
    """10 min. How widely each query looks: the entropy of its row of weights, in nats.

        entropy = −Σ_s α_s log α_s

    It is 0 for a row that looks at one position, and log n for one that looks at n positions alike;
    so its exponential is a number of positions.

    Args:
        weights: (B, H, T, S), rows that sum to 1. Masked positions have the weight 0, and a query
            that is allowed nothing has a row of zeros: its entropy is 0.

    Returns:
        (B, H, T).

    Hint: where does α log α go when α goes to 0, and what does NumPy make of it?
    """
    raise NotImplementedError


def stand_ins(loss_without, num_heads):
    """25 min. Which pairs of heads stand in for each other.

    Removing one head makes the loss rise, removing two makes it rise, too. By how much more than by
    the sum of the two rises? If it is much more, each was doing the work of the other.

    Args:
        loss_without: function from a tuple of different heads, numbered from 0, to the loss of
            the model without them; ``loss_without(())`` is that of the whole model. It is
            expensive: ask for each set of heads at most once, in whatever order of its members.
        num_heads: n.

    Returns:
        (n, n), symmetric: rise without both, minus the sum of the two rises. The diagonal is 0.

    Hint: a rise is a difference of two losses. Write all three out before you add them up.
    """
    raise NotImplementedError


def attention_rollout(encoder, cross):
    """45 min. From which source words a step of the decoder gets what it gets.

    Cross-attention says from which positions of the memory. But such a position is a mixture by
    then. Follow Abnar and Zuidema (2020): take the mean of the weights over the heads. An encoder
    layer hands on half of what was there, by its residual connection, and half of what its
    attention fetched. So each layer is a matrix of shares; and layers follow one another.

    Args:
        encoder: (L, H, S, S), the weights of L encoder layers, the lowest first.
        cross: (H, T, S), the weights of one cross-attention.

    Returns:
        (T, S), the share of source word s in what step t is given. Its rows sum to 1.

    Hint: let x be the words, a column of S vectors. What is there after the first layer, as a
    matrix times x? After the second? Which matrix stands left?
    """
    raise NotImplementedError
