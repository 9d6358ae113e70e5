"""Exercises of lesson 08, scaled dot-product attention. Check yours:  minitransformer check ex08

Shapes: B batch, H heads, T queries, S keys and values, K width of a head, which is the paper's d_k.
Scores may be anything between −10,000 and 10,000.
"""

import numpy as np


def score_of_itself(d_k):
    """10 min. What a position's score with itself is like, if its key is its query.

    The features of q are independent and standard normal. The score is q · q / √d_k.

    Args:
        d_k: width of q.

    Returns:
        mean and standard deviation of the score, two numbers.

    Hint: the square of a standard normal number has mean 1 and variance 2. With the key of another
    position, mean and standard deviation are 0 and 1.
    """
    raise NotImplementedError


def packed_mask(segments):
    """25 min. The mask for several sentences in one row.

    A row such as [1, 1, 1, 2, 2, 0] holds a sentence of three tokens, one of two, and padding. Each
    token may look at itself and at those before it in its own sentence. Padding looks at nothing,
    and nothing looks at padding.

    Args:
        segments: integers (B, T), the number of the sentence that a token belongs to; 0 is padding.

    Returns:
        boolean (B, 1, T, T), True where the query in the row may look at the key in the column.

    Hint: segments[:, :, None] is (B, T, 1), and segments[:, None, :] is (B, 1, T).
    """
    raise NotImplementedError


def biased_attention(query, key, value, bias):
    """45 min, with its backward. Attention with a learned number for each pair of positions.

        Y = softmax(Q Kᵀ / √d_k + bias) V

    The bias is a parameter: each head has its own, and all sentences of a batch share it.

    Args:
        query: (B, H, T, K).
        key, value: (B, H, S, K).
        bias: (H, T, S).

    Returns:
        y (B, H, T, K) and a tuple, the cache.
    """
    raise NotImplementedError


def biased_attention_backward(dy, cache):
    """Gradients dquery (B, H, T, K), dkey and dvalue (B, H, S, K), dbias (H, T, S).

    Hint: what is the derivative of a score by its bias? And how many scores does a bias serve?
    """
    raise NotImplementedError


def lean_attention(query, key, value):
    """90 min, with its backward. Attention that keeps no weights for its backward.

    Keep what grows with the length, not with its square: besides query, key, value and y the cache
    may hold one number for each query. The backward computes the weights again.

    Args:
        query: (B, H, T, K).
        key, value: (B, H, S, K).

    Returns:
        y (B, H, T, K) and a tuple, the cache, in which no array is larger than the largest of
        query, key and value.
    """
    raise NotImplementedError


def lean_attention_backward(dy, cache):
    """Gradients dquery (B, H, T, K), dkey and dvalue (B, H, S, K).

    Hint: a weight is exp(z − c) with one c for a whole row. Which c? And the row sums of A · dA
    need no A at all: section 3 has another formula for them.
    """
    raise NotImplementedError
