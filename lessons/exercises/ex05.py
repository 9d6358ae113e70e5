"""Exercises of lesson 05, tokens and embeddings. Check yours:  minitransformer check ex05

Shapes: B batch, T length, D width, V size of the vocabulary.
"""

import numpy as np


def scatter_by_product(dx, ids, vocabulary_size):
    """10 min. The gradient of an embedding's weight, by one matrix product.

    The forward was x = √D · weight[ids]. No loop over positions, and no np.add.at.

    Args:
        dx: (B, T, D).
        ids: integers (B, T), from 0 to V − 1; some occur more than once.
        vocabulary_size: V.

    Returns:
        dweight (V, D).

    Hint: what does ids.reshape(-1, 1) == np.arange(V) give?
    """
    raise NotImplementedError


def tied_bigram(weight, ids):
    """25 min, with its backward. Scores for the next word, from the present word alone.

        x = √D · weight[ids]        y = x weightᵀ

    Args:
        weight: (V, D), at both ends.
        ids: integers (B, T); some occur more than once.

    Returns:
        y (B, T, V) and the cache for the backward.
    """
    raise NotImplementedError


def tied_bigram_backward(dy, cache):
    """Gradient dweight (V, D). The ids have none.

    Hint: take the two uses for two matrices first. You may use what the first exercise gave you.
    """
    raise NotImplementedError


def fewest_pieces(word, vocabulary):
    """45 min. A word, cut into as few pieces of the vocabulary as possible.

    Args:
        word: a string, not empty.
        vocabulary: a set of strings; every character of the word is in it.

    Returns:
        a list of pieces which make up the word; one of the shortest lists, if there are several.

    Hint: if you knew the answer for word[:i], for every i < n, what would be that for word[:n]?
    """
    raise NotImplementedError


def segmentation_probabilities(word, order, p):
    """45 min. How probable each way to write a word is under BPE-dropout.

    The pieces of a word begin as its characters. At each step, each pair of neighbours whose union
    is in ``order`` is a possible merge, two places being two merges, and each is forbidden with
    probability p, independently. Of what is allowed, that whose union has the smallest number is
    carried out; of two places with the same union, the left one. If nothing is allowed, the pieces
    stay as they are.

    Args:
        word: a string, not empty.
        order: a dictionary from pieces of two or more characters to their numbers.
        p: a probability, 0 <= p < 1.

    Returns:
        a dictionary from tuples of pieces to their probabilities.

    Hint: with the possible merges in order, what is the probability that the first is carried out?
    That the second is? That none is? What comes after a merge is the same question again.
    """
    raise NotImplementedError
