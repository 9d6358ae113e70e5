"""The n-gram language model: the next word from the n − 1 words before it, by counting.

With c(h w) how often word w followed the words h, the share c(h w) / c(h) gives every continuation
that was not seen the probability 0, and most are not. So each count is lowered by a discount d, and
what that frees goes to the model of one word less (Kneser and Ney 1995, interpolated as in Chen and
Goodman 1999):

    p(w | h) = max(c(h w) − d, 0) / c(h) + d · t(h) / c(h) · p(w | h without its first word)

with t(h) the number of different words that followed h. Over all w the first term sums to
1 − d t(h) / c(h), as each of the t(h) words lost d ≤ 1: so p sums to 1 if the lower model does, and
the lowest is uniform, 1 / V. Where h never occurred, p is that of the lower model.

A lower model only matters where the higher one has not seen the word. There it is not asked how
frequent w is, but after how many different words it occurs: *Francisco* is frequent, and follows
*San*. So below the highest order, c(h w) is the number of different words seen before h w.

d = n_1 / (n_1 + 2 n_2), with n_k the number of counts that are k, is about what a count is too high
by (Ney, Essen and Kneser 1994).
"""

import math
from collections import Counter, defaultdict


class NGramModel:
    """Counts of a training text, and the probabilities that follow from them.

    Args:
        sentences: lists of ids, each ending with the end symbol; to read, at least one of them.
        order: n, the length of what is counted; 1 looks at no word before.
        vocabulary_size: V, of which the probabilities are.
        start_id: stands before the first word as often as needed. No sentence says it; as of every
            id that was not seen, its share of what is freed is 1 / V.

    Raises:
        ValueError: the order is below 1, or there is nothing to count.
    """

    def __init__(self, sentences, order, vocabulary_size, start_id):
        if order < 1:
            raise ValueError(f"order={order}; an n-gram has at least 1 word")
        self.order, self.vocabulary_size, self.start_id = order, vocabulary_size, start_id
        counts = Counter(
            (*context, word) for sentence in sentences for context, word in self._contexts(sentence)
        )
        if not counts:
            raise ValueError("there is not a single word to count; give sentences to learn from")
        self.levels = []  # that of k words of context at k
        for _ in range(order):
            self.levels.insert(0, _Level(counts))
            counts = Counter(gram[1:] for gram in counts)  # how many different words stood before

    def probability(self, word, context):
        """p(word | context), of an id and a tuple of ids, of which the last n − 1 matter.

        A context of fewer words is answered by the model of fewer words.
        """
        p = 1 / self.vocabulary_size
        for length, level in enumerate(self.levels[: len(context) + 1]):
            p = level.probability(word, context[len(context) - length :], p)
        return p

    def nll(self, sentences):
        """The mean negative log-likelihood of the words, in nats; its exponential: perplexity.

        Raises:
            ValueError: there is no word.
        """
        logs = [
            math.log(self.probability(word, context))
            for sentence in sentences
            for context, word in self._contexts(sentence)
        ]
        if not logs:
            raise ValueError("there is not a single word to predict")
        return -sum(logs) / len(logs)

    def _contexts(self, sentence):
        """Each word of a sentence with the n − 1 before it, a tuple."""
        before = self.order - 1
        ids = (*(self.start_id,) * before, *sentence)
        return [(ids[i : i + before], word) for i, word in enumerate(sentence)]


class _Level:
    """The counts of one length of n-grams."""

    def __init__(self, counts):
        self.counts = counts
        self.total = defaultdict(int)  # c(h)
        self.followers = defaultdict(int)  # t(h)
        for (*context, _), count in counts.items():
            self.total[tuple(context)] += count
            self.followers[tuple(context)] += 1
        once, twice = (sum(count == k for count in counts.values()) for k in (1, 2))
        self.discount = once / (once + 2 * twice) if once else 0.5  # nothing to estimate it from

    def probability(self, word, context, lower):
        """p(word | context), given the probability of the next lower order."""
        if context not in self.total:
            return lower
        kept = max(self.counts[*context, word] - self.discount, 0.0)  # 0 where it was not seen
        freed = self.discount * self.followers[context]
        return (kept + freed * lower) / self.total[context]
