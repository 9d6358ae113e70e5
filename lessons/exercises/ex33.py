"""Exercises of lesson 33, what notes get wrong. Check yours:  minitransformer check ex33

Shapes: T words of a sentence, K features of a query; V pieces of a vocabulary; N examples, D
features of a linear model.
"""

import numpy as np


def kind_of_mask(attend):
    """25 min. Which mask an attention has, found out by asking it.

    ``attend(query, key, value)`` takes three arrays (T, K), with a T and a K of your choice, and
    returns y (T, K): values weighted by the softmax of q · k / √K, under one of these masks.

        "causal"    position t sees itself and all before it
        "strict"    it sees those before it alone; the first position gets zeros
        "late"      it sees all in the softmax; then weights of positions after it are set to 0
        "none"      it sees all

    Args:
        attend: the function to be asked, as often as you like.

    Returns:
        one of the four words.

    Hint: which queries make all scores alike, whatever the keys are?
    """
    raise NotImplementedError


def smoothed_perplexity(pi, epsilon, by_all):
    """25 min. The perplexity of the model with the least smoothed loss, where words are in doubt.

    The next word is v with probability π_v; the model learns π as well as it can. Its target is
    smoothed: for the word that was said, t, q_v = (1 − ε) [v = t] + ε / V if all share ε, and
    1 − ε for t and ε / (V − 1) for each other one if all others do. The loss is least for a model
    that says the mean of these targets over what is said.

    Args:
        pi: (V,), π, which sums to 1; entries may be 0.
        epsilon: ε, 0 ≤ ε < 1.
        by_all: True where ε is shared by all, False where it is shared by all others.

    Returns:
        e to the mean of −log p_t over the words t that are said.

    Hint: how often is a word v the one that was said, and how often is it another one? What weight
    has a word that is never said, in the mean over those that are?
    """
    raise NotImplementedError


def weights_under_dropout(x, y, p):
    """45 min. Where a linear model ends that is trained under dropout of its features.

    Each feature of each example is set to 0 with probability p, drawn anew in each step, or else
    divided by 1 − p. Training lowers the mean of (x̃ · w − y)² over the examples and over all that
    can be drawn. There is one w for which it is least.

    Args:
        x: (N, D), with more examples than features.
        y: (N,).
        p: 0 ≤ p < 1.

    Returns:
        w (D,).

    Hint: claim 16 has the mean. Set its gradient by w to 0. np.linalg.solve solves A w = b.
    """
    raise NotImplementedError


def clipped_precision(hypothesis, references, n):
    """25 min. BLEU's precision for one sentence that has several good translations.

    An n-gram counts as often as it stands in the hypothesis, but at most as often as it stands in
    that one reference which has the most of it.

    Args:
        hypothesis: list of words.
        references: list of lists of words, at least one.
        n: length of the n-grams.

    Returns:
        the sum of what counts, over the number of n-grams of the hypothesis; 0 where it has none.

    Hint: collections.Counter counts; of two, & takes the smaller counts, | the larger ones.
    """
    raise NotImplementedError
