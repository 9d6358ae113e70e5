"""A vocabulary whose pieces have scores, as Llama's have: the best pair of neighbours is joined.

Text begins as single characters, one that is no piece as its bytes in UTF-8. Again and again the
two neighbours are joined whose union is the piece with the highest score, the first of several,
until none is. A blank belongs to the word behind it, and one is put before the text. Every text
can be encoded, so nothing is unknown.

UNK, BOS and EOS are 0, 1 and 2, and byte b is 3 + b, as in sentencepiece's files.
"""

import json
import math
import re
from functools import lru_cache

from minitransformer.data.text.vocabulary import VocabularyError, whole_characters

UNK, BOS, EOS, FIRST_BYTE = 0, 1, 2, 3
SPECIAL = FIRST_BYTE + 256
WORDS = re.compile(r" *[^ ]+| +$")


class ScoredVocabulary:
    """Pieces, bytes each, and their scores.

    Attributes:
        model: the same as the bytes of a file.
        has_mask: whether there is an id for what is left out; there is none.
        begins, ends: the ids that every text begins after, and those at which one ends.
        never: the ids that no text has.
        unknown: None, for there is nothing that has no id.
        pad_id: UNK, which no text has.

    Raises:
        VocabularyError: there are too few pieces, or a score is no number.
    """

    has_mask = False
    begins = (BOS,)
    ends = BOS, EOS  # a text that follows another begins with BOS
    never = (UNK,)
    unknown = None  # what is no piece has its bytes
    pad_id = UNK

    def __init__(self, pieces, scores):
        numbers = len(scores) == len(pieces) and all(map(math.isfinite, scores))
        if len(pieces) <= SPECIAL or not numbers:
            raise VocabularyError(
                f"a vocabulary with scores has more than {SPECIAL} pieces, of which the first ones "
                f"stand for bytes, and a number for each; there are {len(pieces)} pieces"
            )
        of_bytes = [bytes([b]) for b in range(256)]
        self._bytes = [b"", b"", b"", *of_bytes, *pieces[SPECIAL:]]
        self._scores = scores
        self._ids = {piece: i for i, piece in reversed([*enumerate(pieces)][SPECIAL:])}
        texts = [piece.decode("utf-8", "surrogateescape") for piece in pieces]
        self.model = json.dumps({"pieces": texts, "scores": scores}).encode()
        self._word = lru_cache(2**16)(self._encoded)
        self._across = any(b" " in piece.lstrip(b" ") for piece in pieces[SPECIAL:])

    def __reduce__(self):
        """How it is sent to other processes: without what it remembers."""
        return ScoredVocabulary.from_json, (self.model,)

    @classmethod
    def from_json(cls, content):
        """That which ``model`` was made of.

        Raises:
            VocabularyError: this is none.
        """
        try:
            fields = json.loads(content)
            pieces = [piece.encode("utf-8", "surrogateescape") for piece in fields["pieces"]]
            return cls(pieces, list(map(float, fields["scores"])))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if isinstance(error, VocabularyError):
                raise
            raise VocabularyError(
                "this is no vocabulary with scores, or only a part of one"
            ) from error

    def __len__(self):
        return len(self._bytes)

    def encode(self, text):
        """The ids of one text, without BOS and EOS."""
        if not text:
            return []
        text = f" {whole_characters(text)}"
        words = [text] if self._across else WORDS.findall(text)
        return [i for word in words for i in self._word(word)]

    def encode_all(self, texts):
        """The ids of each text."""
        return [self.encode(text) for text in texts]

    def decode(self, ids):
        """The text of ids up to the first at which one ends, without the blank before it."""
        content = b""
        for i in map(int, ids):
            if i in self.ends:
                break
            content += self._bytes[i]
        return content.decode("utf-8", "replace").removeprefix(" ")

    def pieces(self, ids):
        """The piece of each id, to look at."""
        special = ["<unk>", "<s>", "</s>"]
        return [
            special[i] if i < FIRST_BYTE else self._bytes[i].decode("utf-8", "backslashreplace")
            for i in map(int, ids)
        ]

    def _encoded(self, word):
        """The ids of a word with the blanks before it; of a whole text, if pieces reach further."""
        ids = []
        for character in map(str.encode, word):
            whole = self._ids.get(character)
            ids += [FIRST_BYTE + b for b in character] if whole is None else [whole]
        while pairs := list(filter(None, map(self._joined, range(len(ids) - 1), ids, ids[1:]))):
            _, at, joined = max(pairs, key=lambda pair: (pair[0], -pair[1]))
            ids[at : at + 2] = [joined]
        return tuple(ids)

    def _joined(self, at, first, second):
        """(score, place, id) of the union of two neighbours, if that is a piece."""
        i = self._ids.get(self._bytes[first] + self._bytes[second])
        return None if i is None else (self._scores[i], at, i)
