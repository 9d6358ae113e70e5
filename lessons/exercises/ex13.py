"""Exercises of lesson 13, training for real. Check yours:  minitransformer check ex13"""


def joined_perplexity(perplexities, counts):
    """10 min. The perplexity of a whole validation set, from those of its parts.

    Args:
        perplexities: exp(mean NLL of a token) of each part.
        counts: how many tokens each part has.

    Returns:
        the perplexity of all tokens together.

    Hint: which of the numbers that lead to a perplexity may be added?
    """
    raise NotImplementedError


def epoch_order(seed, epoch, count):
    """25 min. The order of the training pairs in an epoch, which a resumed run can repeat.

    It depends on the arguments alone: not on epochs asked for before, nor on any other use of
    random numbers. Other seeds and other epochs give other orders, and so does (1, 2) than (2, 1).

    Args:
        seed, epoch: integers, 0 or more.
        count: how many pairs there are.

    Returns:
        an array of count integers, a permutation of 0 to count - 1.

    Hint: what may one hand to np.random.default_rng?
    """
    raise NotImplementedError


def clip_to_norm(g, limit):
    """45 min, with its backward. A vector shortened to at most a given length.

    y = g · limit / max(‖g‖, limit). Learned optimizers send gradients through this.

    Args:
        g: 1-D, not of length limit exactly.
        limit: c, a positive number; it has no gradient.

    Returns:
        y and a tuple, the cache.
    """
    raise NotImplementedError


def clip_to_norm_backward(dy, cache):
    """Gradient dg, of the shape of g.

    Hint: where g is too long, what happens to y when g grows longer still?
    """
    raise NotImplementedError


def fewest_positions(lengths, count):
    """90 min. The least room that sentences take in a given number of padded batches.

    A batch of n sentences, of which the longest has l tokens, takes n · l positions. Each sentence
    goes into exactly one of the batches, and no batch is empty.

    Args:
        lengths: N integers, in any order.
        count: K batches, 1 ≤ K ≤ N.

    Returns:
        the least total number of positions.

    Hint: put them in order of length. Let best[k][n] be the least for the n shortest sentences in k
        batches. Which sentences can be in the last of these batches, and what remains?
    """
    raise NotImplementedError
