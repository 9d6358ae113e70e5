"""Exercises of lesson 22, a language model. Check yours:  minitransformer check ex22

Shapes: B batch, T positions, V vocabulary, H heads, K width of a head.
"""

import numpy as np


def bits_per_character(log_probabilities, pieces):
    """10 min. How many bits a model spends on each character of a text.

    Two models may cut a text into different pieces: characters, subwords, words. Their perplexities
    are for a piece each and cannot be compared. What they spend on the whole text can.

    Args:
        log_probabilities: (n,), the natural logarithm of the probability of each piece.
        pieces: list of n strings, none of them empty; joined, they are the text.

    Returns:
        a number.

    Hint: how many nats does the model spend on the whole text? A bit is ln 2 nats.
    """
    raise NotImplementedError


def temperature_of(logits, perplexity):
    """25 min. The temperature at which a distribution has a given perplexity.

    At a fixed temperature a model is sure at one place and at a loss at another. Here we want it to
    hesitate between equally many tokens everywhere: find τ such that softmax(logits / τ) has the
    perplexity e^H, where H is its entropy in nats.

    Args:
        logits: (V,), no two of them equal; up to ±10,000.
        perplexity: 1 < perplexity < V.

    Returns:
        τ, to six digits.

    Hint: dH/dτ is the variance of the logits under the distribution, over τ³. What does its sign
    say about where to look? τ may lie anywhere between 1e-6 and 1e6.
    """
    raise NotImplementedError


def induction_attention(ids):
    """25 min. What an ideal induction head looks at.

    Position t looks for earlier positions s < t with the same token, and attends to what followed
    them, s + 1, to each with the same weight. Where the token is new, all weights of t are 0.

    Args:
        ids: integers (B, T).

    Returns:
        weights (B, T, T), the query in the row, the key in the column.

    Hint: write the matrix of equal pairs (t, s) with s < t first. What happens to it when each s is
    replaced by s + 1? Does a position ever look ahead?
    """
    raise NotImplementedError


def attention_step(query, key, value, kept):
    """45 min. Causal attention that goes on where it stopped.

    A text comes in pieces of any length, 1 or more. For each piece you get the queries, keys and
    values of its own positions. All positions before it may be looked at, too, so you keep what you
    need of them. The results must be those of one causal attention over the whole text.

    Args:
        query, key, value: (H, t, K), those of the t new positions.
        kept: what the last call returned, or None at the beginning. It is not changed: somebody may
            go on from it a second time, with another piece.

    Returns:
        y (H, t, K), and what to keep, in any form.

    Hint: the mask is (t, S), with S all positions so far. Which row of the mask over the whole text
    is its first?
    """
    raise NotImplementedError
