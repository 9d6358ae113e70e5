"""Exercises of lesson 26, what a layer remembers. Check yours:  minitransformer check ex26

Shapes: B batch, H heads, T positions, K width of a head.
"""

import numpy as np


def recall_weights(keys, values, length):
    """45 min. Three matrices with which attention finds a value by its key.

    The words are those of section 2: the pair of key i and value j is word i · values + j, the
    question for key i is word keys · values + i. x (T, W) has a row for each word of a sequence: 1
    at its number, 0 elsewhere, W = keys · values + keys. The last word is a question, and the pair
    that it asks for stands somewhere before it, once. Other pairs may come again and again.

    Args:
        keys, values: how many there are.
        length: T is at most this.

    Returns:
        w_query and w_key (W, K), with any K you like, and w_value (W, values). In the last row
        of softmax(x w_query (x w_key)ᵀ / √K) x w_value, without a mask, there must be 1 at the
        value that was asked for and 0 elsewhere, up to 0.001.

    Hint: each row of the matrices belongs to a word. Which words should have a large score with
    the question? And how large, if there are ``length`` words that share the rest?
    """
    raise NotImplementedError


def linear_attention(query, key, value):
    """90 min, with its backward. Causal attention without a softmax (Katharopoulos et al. 2020).

        y_t = Σ_{s ≤ t} (φ(q_t) · φ(k_s)) v_s / Σ_{s ≤ t} φ(q_t) · φ(k_s)

    with φ(x) = x + 1 where x > 0, and eˣ elsewhere, for each feature. No array may have T² numbers,
    here and in the backward.

    Args:
        query, key, value: (B, H, T, K).

    Returns:
        y (B, H, T, K) and the cache.

    Hint: φ(q_t) serves all terms of both sums, and can stand before them. What is left inside is
    a running sum: a state, as in a recurrent layer.
    """
    raise NotImplementedError


def linear_attention_backward(dy, cache):
    """Gradients dquery, dkey and dvalue, (B, H, T, K) each.

    Hint: k_s serves all t ≥ s. So there are running sums again: from which end?
    """
    raise NotImplementedError
