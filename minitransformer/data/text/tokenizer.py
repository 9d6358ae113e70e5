"""The vocabulary of a model of others, as the package ``tokenizers`` keeps and applies it.

Most such are of bytes: a text begins as its bytes in UTF-8, and neighbours are joined in the order
in which the pairs were learned (Radford et al. 2019). So every text can be encoded, and none is
encoded to what stands for no text, such as the end of a turn of a conversation.
"""

import json

from minitransformer.core.libraries import library
from minitransformer.data.text.vocabulary import VocabularyError, whole_characters


class TokenizerVocabulary:
    """A tokenizer, and where its texts begin and end.

    Args:
        tokenizer: what ``tokenizers`` writes, a tokenizer.json, as a dict.
        begins: the ids that every text begins after.
        ends: the ids at which a text ends.

    Attributes:
        model: the same as the bytes of a file.
        tokenizer: what it was given.
        special: the ids of what stands for no text, by its name.
        never: the ids that no text has.
        has_mask, unknown, pad_id: there is no id for what is left out, none for what is unknown,
            and none that stands for no token.

    Raises:
        VocabularyError: this is no tokenizer, or it has not these ids.
        MissingLibraryError: there is no package tokenizers.
    """

    has_mask, unknown, pad_id = False, None, -1

    def __init__(self, tokenizer, begins=(), ends=()):
        self.tokenizer, self.begins, self.ends = tokenizer, tuple(begins), tuple(ends)
        fields = {"tokenizer": tokenizer, "begins": self.begins, "ends": self.ends}
        self.model = json.dumps(fields).encode()
        library_of = library("tokenizers", "a vocabulary of others")
        try:
            self._tokenizer = library_of.Tokenizer.from_str(json.dumps(tokenizer))
        except Exception as error:  # it has no type of its own
            raise VocabularyError(f"this is no tokenizer: {error}") from error
        self._tokenizer.encode_special_tokens = True  # in a text they are letters as any
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        if max(self._tokenizer.get_vocab().values(), default=0) != len(self) - 1:
            raise VocabularyError("the ids of this tokenizer are not 0, 1, 2, …")
        added = self._tokenizer.get_added_tokens_decoder()
        self.special = {token.content: i for i, token in added.items() if token.special}
        ids = [*self.begins, *self.ends]
        if not all(type(i) is int and 0 <= i < len(self) for i in ids):
            raise VocabularyError(
                f"of a vocabulary of {len(self)} pieces texts cannot begin or end with {ids}"
            )
        self.never = tuple(i for i in self.special.values() if i not in self.ends)

    def __reduce__(self):
        """How it is sent to other processes."""
        return TokenizerVocabulary.from_json, (self.model,)

    @classmethod
    def from_json(cls, content):
        """That which ``model`` was made of.

        Raises:
            VocabularyError, MissingLibraryError: as for the class.
        """
        try:
            fields = json.loads(content)
            return cls(fields["tokenizer"], list(fields["begins"]), list(fields["ends"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if isinstance(error, VocabularyError):
                raise
            raise VocabularyError("this is no vocabulary with a tokenizer") from error

    @classmethod
    def of_bytes(cls, pieces, merges, special, *, digits_alone=False, begins=(), ends=()):
        """That of these pieces, in the letters that GPT-2 writes bytes with.

        Args:
            pieces: by their ids, each once.
            merges: pairs of pieces that are joined, with a blank between, the first learned first.
            special: ids of what stands for no text.
            digits_alone: whether each digit is a piece of its own.
        """
        fields = _fields_of_bytes(pieces, merges, special, digits_alone)
        return cls(fields, begins, ends)

    def __len__(self):
        return self._tokenizer.get_vocab_size()

    def encode(self, text):
        """The ids of one text, without those that it begins after."""
        return self._tokenizer.encode(whole_characters(text), add_special_tokens=False).ids

    def encode_all(self, texts):
        """The ids of each text."""
        whole = list(map(whole_characters, texts))
        return [e.ids for e in self._tokenizer.encode_batch(whole, add_special_tokens=False)]

    def decode(self, ids):
        """The text of ids up to the first at which one ends; other special ones are nothing."""
        ids = [int(i) for i in ids]
        end = next((n for n, i in enumerate(ids) if i in self.ends), len(ids))
        return self._tokenizer.decode(ids[:end], skip_special_tokens=True)

    def pieces(self, ids):
        """The piece of each id, to look at."""
        return [self._tokenizer.id_to_token(int(i)) for i in ids]


def _fields_of_bytes(pieces, merges, special, digits_alone):
    of_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    digits = [{"type": "Digits", "individual_digits": True}] if digits_alone else []
    pre_tokenizers = [*digits, of_bytes | {"use_regex": True}]
    plain = dict(single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
    return {
        "version": "1.0",
        "added_tokens": [{"id": i, "content": pieces[i], **plain} for i in special],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": pre_tokenizers},
        "decoder": of_bytes | {"use_regex": True},
        "model": {
            "type": "BPE",
            "vocab": {piece: i for i, piece in enumerate(pieces)},
            "merges": merges,
        },
    }
