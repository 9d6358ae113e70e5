"""Exercises of lesson 00, start here. Check yours:  minitransformer check ex00

Shapes: H heads, T target length, S source length.
"""


def most_attended(weights, source_pieces):
    """10 min. The source piece that each target piece looked at most.

    Args:
        weights: cross-attention of one layer, (H, T, S), a NumPy array.
        source_pieces: S strings.

    Returns:
        a list of T strings: for each target position the source piece with the largest weight, in
        the mean over the heads.

    Hint: which axis do you average away, and along which do you look for the largest?
    """
    raise NotImplementedError


def crossings(alignment):
    """10 min. How far a translation is from word by word.

    Two target positions cross if the earlier one looks at the later source position. A translation
    word by word has no crossings.

    Args:
        alignment: a list of T source positions: alignment[t] is where target position t looks.

    Returns:
        the number of pairs of target positions that cross; two that look at the same source
        position do not.

    Hint: the pairs t < u need not be neighbours. [2, 0, 1] has two crossings.
    """
    raise NotImplementedError
