"""Exercises of lesson 14, decoding. Check yours:  minitransformer check ex14"""


def alpha_of_a_tie(log_p, length, other_log_p, other_length):
    """10 min. The exponent α at which two translations have the same score.

    The score is log P / ((5 + length) / 6)^α.

    Args:
        log_p, length: log P(Y | X) < 0 of one translation, and its number of tokens.
        other_log_p, other_length: of the other; the lengths differ.

    Returns:
        α, a number; it may be negative.

    Hint: both scores are negative. Set them equal, and take the logarithm of their ratio.
    """
    raise NotImplementedError


def nucleus(probabilities, p):
    """25 min. What is left of a distribution for sampling from its nucleus (Holtzman et al. 2020).

    The nucleus is the smallest set of words whose probabilities sum to p or more, taken from the
    most probable downwards. All others get 0, and the rest is scaled to sum to 1.

    Args:
        probabilities: (V,), no two of them equal, sum 1, in any order.
        p: 0 < p <= 1.

    Returns:
        (V,), the new probabilities, in the order of the old.

    Hint: the word that makes the sum reach p belongs to the nucleus. What was the sum before it?
    """
    raise NotImplementedError


def exact_search(next_log_p, max_length):
    """45 min. The sequence of the highest probability, certainly.

    Args:
        next_log_p: function from a tuple of words, the prefix, to a list of V log-probabilities
            of the next word, each < 0. Word 0 is the end symbol.
        max_length: most words of a sequence, the end symbol counted.

    Returns:
        The finished sequence of highest probability, a tuple that ends with 0, and its log P.

    Each call of next_log_p is expensive: the check allows ten times as many as there are prefixes
    more probable than the answer, and ten more. Trying all sequences is out of the question.

    Hint: log P of a prefix only falls when it is continued. Which prefix should be continued next,
    and when can nothing better follow? The module heapq may help.
    """
    raise NotImplementedError


def chrf(hypotheses, references):
    """45 min. chrF2 of a corpus (Popović 2015), a score of characters where BLEU has words.

    All blanks are removed from a text. For each n from 1 to 6, count the n-grams of characters of
    each hypothesis and each reference, and their matches, clipped as in BLEU; sum all three
    counts over the corpus. The precision for n is matches / n-grams of the hypotheses, the recall
    is matches / n-grams of the references. With P and R their means over the six n and β = 2,

        chrF2 = 100 (1 + β²) P R / (β² P + R).

    Args:
        hypotheses, references: lists of texts, as many of each, none shorter than 6 characters
            without blanks.

    Returns:
        A number from 0 to 100; 0 where nothing matches.

    Hint: collections.Counter counts, and its operator & takes the smaller of two counts.
    """
    raise NotImplementedError
