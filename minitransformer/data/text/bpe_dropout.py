"""BPE-dropout (Provilkov, Emelianenko and Voita 2020, Algorithm 1): the same word in other pieces.

Byte-pair encoding starts from single characters and merges, step by step, the two neighbours whose
union is the piece learned first, until no two neighbours make a piece. BPE-dropout forbids each
possible merge with probability p, drawn anew at every step, and stops when all are forbidden. So
the model also sees frequent words in small pieces and learns what those mean. With p = 0 it is BPE.

sentencepiece has a variant of this, but since version 0.2.2 its random numbers differ from process
to process whatever the seed, and a resumed run could not repeat the data of an uninterrupted one.
Here they come from a NumPy generator. All words of one length take their steps together, as the
rows of an array.
"""

from functools import lru_cache

import numpy as np

NONE = np.iinfo(np.int32).max  # no piece: larger than any id, so never the minimum


class BPEDropout:
    """Cuts words at random into pieces of a vocabulary.

    Args:
        ids: the id of each piece, characters among them; of two pieces the one learned first has
            the smaller id.
        unknown: the id of a character that has none.
    """

    def __init__(self, ids, unknown):
        self.ids = ids
        self.unknown = unknown
        self.longest = max(map(len, ids))
        self.table = lru_cache(maxsize=2**17)(self._table)  # the same words come every epoch

    def __call__(self, words, p, rng):
        """Cut each word.

        Args:
            words: W strings, none of them empty.
            p: probability that a possible merge is forbidden at a step, 0 <= p < 1.
            rng: a NumPy generator.

        Returns:
            The ids of the pieces of all words in one array, and how many each word has (W,).
        """
        numbers = {}
        type_of = np.array([numbers.setdefault(word, len(numbers)) for word in words], np.int64)
        types = list(numbers)
        length_of = np.array([len(word) for word in types], np.int64)  # of each type
        row_of = np.zeros(len(types), np.int64)

        counts = np.zeros(len(words), np.int64)
        cut = []
        for n in np.unique(length_of):
            of_length = np.flatnonzero(length_of == n)
            row_of[of_length] = np.arange(len(of_length))
            tables = np.stack([self.table(types[i]) for i in of_length])
            members = np.flatnonzero(length_of[type_of] == n)  # (N,)
            pieces = _merge(tables, row_of[type_of[members]], p, rng)  # (N, n)
            unknown = pieces == self.unknown
            pieces[:, 1:][unknown[:, 1:] & unknown[:, :-1]] = NONE  # several in a row are one
            counts[members] = (pieces != NONE).sum(axis=1)
            cut.append((members, pieces))

        ids = np.empty(counts.sum(), np.int32)
        first = np.cumsum(counts) - counts  # where the pieces of each word begin
        for members, pieces in cut:
            found = pieces != NONE
            within = found.cumsum(axis=1) - 1
            ids[(first[members, None] + within)[found]] = pieces[found]
        return ids, counts

    def _table(self, word):
        """Ids (n, longest + 1) of all pieces in a word of n characters, NONE where there is none.

        Row i, column k is the piece of k + 1 characters that begins at i. The last column stands
        for whatever is too long to be a piece.
        """
        n = len(word)
        table = np.full((n, self.longest + 1), NONE, np.int32)
        for i in range(n):
            for k in range(min(self.longest, n - i)):
                if (piece := self.ids.get(word[i : i + k + 1])) is not None:
                    table[i, k] = piece
        table[table[:, 0] == NONE, 0] = self.unknown
        return table


def _merge(tables, row, p, rng):
    """Cut N words of n characters, whose pieces are in ``tables[row]``.

    Returns:
        (N, n): the id of each piece, in the place of its first character; else NONE.
    """
    N, n = len(row), tables.shape[1]
    longest = tables.shape[2] - 1

    def piece(word, begin, end):
        return tables[row[word], begin, np.minimum(end - begin - 1, longest)]

    # Of the pieces that meet at i, one begins at begins[word, i] and one ends at ends[word, i];
    # union[word, i] is the id of both together. At 0 and n, where only one piece is, the other one
    # would reach out of the word, and there is no such union.
    begins = np.tile(np.arange(-1, n), (N, 1))  # (N, n + 1)
    ends = np.tile(np.arange(1, n + 2), (N, 1))  # (N, n + 1)
    union = np.full((N, n + 1), NONE, np.int32)
    union[:, 1:n] = tables[row, :-1, 1]
    starts = np.full((N, n), True)  # where a piece begins

    active = np.arange(N)  # words that can still change
    while len(active):
        allowed = union[active]
        allowed[rng.random(allowed.shape, np.float32) < p] = NONE
        place = allowed.argmin(axis=1)
        possible = allowed[np.arange(len(active)), place] != NONE
        active, place = active[possible], place[possible]

        begin, end = begins[active, place], ends[active, place]
        starts[active, place] = False
        union[active, place] = NONE
        ends[active, begin] = end
        begins[active, end] = begin
        union[active, begin] = piece(active, begins[active, begin], end)
        union[active, end] = piece(active, begin, ends[active, end])

    word, i = starts.nonzero()
    pieces = np.full((N, n), NONE, np.int32)
    pieces[word, i] = piece(word, i, ends[word, i])
    return pieces
