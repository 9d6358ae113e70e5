"""Solutions of lesson 05, tokens and embeddings."""

import math
from itertools import pairwise

import numpy as np


def scatter_by_product(dx, ids, vocabulary_size):
    """The lookup is a product with ones and zeros; its gradient is that with the transpose.

    It takes B T V D multiplications, nearly all of them by 0: fine on paper, slow on a computer.
    """
    width = dx.shape[-1]
    one_hot = ids.reshape(-1, 1) == np.arange(vocabulary_size)  # (B T, V)
    return math.sqrt(width) * one_hot.T.astype(dx.dtype) @ dx.reshape(-1, width)


def tied_bigram(weight, ids):
    x = math.sqrt(weight.shape[1]) * weight[ids]  # (B, T, D)
    return x @ weight.T, (x, weight, ids)


def tied_bigram_backward(dy, cache):
    """As projection the matrix gets dyᵀ x, as embedding what the scatter makes of dx."""
    x, weight, ids = cache
    vocabulary_size, width = weight.shape
    dx = dy @ weight  # (B, T, D)
    as_projection = dy.reshape(-1, vocabulary_size).T @ x.reshape(-1, width)
    return as_projection + scatter_by_product(dx, ids, vocabulary_size)


def fewest_pieces(word, vocabulary):
    """best[n] is the shortest list for word[:n]: some best[i], and word[i:n] as its last piece.

    Taking the longest piece first is not it: "abcde" is "ab cde", not "abc d e".
    """
    best = [[]]
    for n in range(1, len(word) + 1):
        candidates = (best[i] + [word[i:n]] for i in range(n) if word[i:n] in vocabulary)
        best.append(min(candidates, key=len))
    return best[-1]


def segmentation_probabilities(word, order, p):
    """Merge number k is carried out if the k before it are forbidden and it is not: pᵏ (1 − p).

    None of n is with probability pⁿ. There are many more paths than results, and paths that meet
    in one set of pieces add up.
    """

    def after(pieces):
        possible = [
            (order[left + right], place)
            for place, (left, right) in enumerate(pairwise(pieces))
            if left + right in order
        ]
        found = {pieces: p ** len(possible)}
        for k, (_, i) in enumerate(sorted(possible)):
            merged = (*pieces[:i], pieces[i] + pieces[i + 1], *pieces[i + 2 :])
            for result, probability in after(merged).items():
                found[result] = found.get(result, 0) + p**k * (1 - p) * probability
        return {result: probability for result, probability in found.items() if probability}

    return after(tuple(word))
