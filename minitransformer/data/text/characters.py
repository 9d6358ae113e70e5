"""The vocabulary of single characters: one id for each that the training text has.

Unlike subwords it keeps a text exactly as it is, blanks and line ends among the rest. It has the
methods of a :class:`Vocabulary` that a language model needs.
"""

import json

from minitransformer.core.regular_file import read_regular, written_whole
from minitransformer.data.text.scored import ScoredVocabulary
from minitransformer.data.text.tokenizer import TokenizerVocabulary
from minitransformer.data.text.vocabulary import (
    ENDS,
    EOS,
    LARGEST,
    NEVER,
    PAD,
    REPLACEMENT,
    UNK,
    Vocabulary,
    VocabularyError,
)

SPECIAL = 4  # PAD, UNK, BOS and EOS


class CharacterVocabulary:
    """PAD, UNK, BOS and EOS, then the characters in the order of Unicode.

    Attributes:
        characters: those that have an id, as one string.
        model: the same as the bytes of a file.
        has_mask: whether there is an id for what is left out; there is none.
    """

    has_mask = False
    begins, ends, never, unknown, pad_id = (), ENDS, NEVER, UNK, PAD  # as of a Vocabulary

    def __init__(self, characters):
        self.characters = characters
        self.model = json.dumps({"characters": characters}).encode()
        self._ids = {character: i for i, character in enumerate(characters, start=SPECIAL)}

    @classmethod
    def from_json(cls, content):
        """That which ``model`` was made of.

        Raises:
            VocabularyError: this is none.
        """
        try:
            characters = json.loads(content)["characters"]
            whole = isinstance(characters, str) and len(set(characters)) == len(characters) > 0
        except (ValueError, KeyError, RecursionError):
            whole = False
        if not whole:
            raise VocabularyError(
                "this is no vocabulary of minitransformer, or only a part of one; take it from a "
                "copy of the run, or train again"
            )
        return cls(characters)

    @classmethod
    def train(cls, texts):
        """That of all characters in the texts.

        Raises:
            VocabularyError: there are none.
        """
        characters = set().union(*texts)
        if not characters:
            raise VocabularyError("there is no text to learn a vocabulary from")
        return cls("".join(sorted(characters)))

    def __len__(self):
        return SPECIAL + len(self.characters)

    def encode(self, text):
        """The ids of one text, without BOS and EOS; UNK for each unknown character."""
        return [self._ids.get(character, UNK) for character in text]

    def encode_all(self, texts):
        """The ids of each text."""
        return [self.encode(text) for text in texts]

    def decode(self, ids):
        """The text of ids up to the first EOS; PAD and BOS are nothing, UNK is REPLACEMENT."""
        ids = [int(i) for i in ids]
        ids = ids[: ids.index(EOS)] if EOS in ids else ids
        return "".join(
            self.characters[i - SPECIAL] if i >= SPECIAL else REPLACEMENT * (i == UNK) for i in ids
        )

    def pieces(self, ids):
        """The character of each id, to look at."""
        special = ["<pad>", "<unk>", "<s>", "</s>"]
        return [special[i] if i < SPECIAL else self.characters[i - SPECIAL] for i in map(int, ids)]


def save_vocabulary(path, vocabulary):
    """Write a vocabulary, of any kind, to a file: all of it, or nothing."""
    with written_whole(path) as file:
        file.write(vocabulary.model)


def load_vocabulary(path):
    """The vocabulary in a file: of subwords, of characters, or of a model of others.

    Raises:
        VocabularyError: the file holds something else, or not all of it.
        OSError: there is no such file, or it is none to be read: see :func:`read_regular`.
    """
    content = read_regular(path, LARGEST)
    if not content.startswith(b"{"):  # as no sentencepiece model does
        return Vocabulary.load(path)
    kind = CharacterVocabulary
    if content.startswith(b'{"pieces"'):
        kind = ScoredVocabulary
    elif content.startswith(b'{"tokenizer"'):
        kind = TokenizerVocabulary
    try:
        return kind.from_json(content)
    except VocabularyError as error:
        raise VocabularyError(f"{path}: {error}") from error
