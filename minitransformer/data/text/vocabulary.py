"""The vocabulary: text in, ids of subword pieces out, and back (byte-pair encoding, section 5.1).

One vocabulary serves both languages. It is learned by sentencepiece and lives in one file, the
sentencepiece model. Text stays as people write it, cased and unsegmented, but for two things that
nobody sees: accents are composed with their letters (Unicode NFC), and any run of blanks, the
no-break space among them, becomes one space. So ``decode(encode(text))`` is the text again, with
REPLACEMENT for characters that the training text does not have.
"""

import io
import re
import unicodedata
from itertools import groupby, pairwise

import numpy as np

from minitransformer.core.errors import InputError
from minitransformer.core.libraries import library
from minitransformer.core.regular_file import read_regular
from minitransformer.data.text.bpe_dropout import BPEDropout

PAD, UNK, BOS, EOS = 0, 1, 2, 3
MASK = 4  # in a vocabulary that has one
ENDS, NEVER = (EOS,), (PAD, UNK, BOS)  # where a text ends; what none has
LARGEST = 10**8  # bytes of a file; the largest vocabularies that people use have a few million
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"  # what UNK is decoded to
BLANK = "\N{LOWER ONE EIGHTH BLOCK}"  # sentencepiece's own sign for the space before a word
MASK_PIECE = "<mask>"
GAP = re.compile("_{3,}")  # where a piece is left out of a text
RESERVED = (BLANK, "\N{LOWER FIVE EIGHTHS BLOCK}", "\0")  # it learns none of these from a text
LONG = 1000  # characters: the marks of longer texts are put in order before unicodedata does it


class VocabularyError(InputError):
    """A vocabulary cannot be learned or read; says why and what to do."""


class Vocabulary:
    """Pieces and their ids: PAD, UNK, BOS and EOS, MASK if there is one, then pieces of text.

    Attributes:
        model: the sentencepiece model, as the bytes of its file.
        has_mask: whether the id MASK stands for a piece left out. No text is encoded to it.
        begins: the ids that every text begins after, where the vocabulary demands it.
        ends, never: the ids at which a text ends, and those that none has.
        unknown: the id of what has none, or None where there is nothing such.
        pad_id: the id that stands for no token, -1 where there is none.

    Raises:
        VocabularyError: ``model`` is no such model, or not all of it.
        MissingLibraryError: there is no sentencepiece.
    """

    begins, ends, never, unknown, pad_id = (), ENDS, NEVER, UNK, PAD

    def __init__(self, model):
        self.model = model
        self._processor = _sentencepiece().SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
            # A model cut off between two pieces still loads, but without the settings at its end.
            whole = self._processor.decode([UNK]) == REPLACEMENT
            self.has_mask = self.pieces([MASK]) == [MASK_PIECE] and self._processor.is_control(MASK)
            ids = range(MASK + self.has_mask, len(self))
            pieces = self.pieces(ids)
        except (RuntimeError, IndexError, UnicodeDecodeError):
            whole = False
        if not whole:
            raise VocabularyError(
                "this is no vocabulary of minitransformer, or only a part of one; take it from a "
                "copy of the run, or train again"
            )
        self._dropout = BPEDropout(dict(zip(pieces, ids, strict=True)), UNK)
        self._longest = max(map(len, pieces))  # characters of a piece
        unknown = f"[^ {re.escape(''.join(piece for piece in pieces if len(piece) == 1))}]"
        self._unknown_run = re.compile(f"({unknown}){unknown}+")

    def __reduce__(self):
        """How it is sent to other processes: as its model, of which all the rest is made."""
        return type(self), (self.model,)

    @classmethod
    def train(cls, texts, size, mask=False):
        """Learn ``size`` pieces from the texts of both languages, of the training split only.

        Every character of the texts gets an id; the same texts give the same vocabulary. With
        ``mask`` one of the pieces is that of MASK.

        Raises:
            VocabularyError: the texts do not have so many pieces, or have more characters; says
                which sizes are possible.
        """
        file = io.BytesIO()
        try:
            _sentencepiece().SentencePieceTrainer.train(
                sentence_iterator=(normalized(text) for text in texts),
                model_writer=file,
                model_type="bpe",
                vocab_size=size,
                character_coverage=1.0,
                normalization_rule_name="identity",  # normalized has done it
                max_sentence_length=2**30,  # bytes; longer ones would be left out without a word
                pad_id=PAD,
                unk_id=UNK,
                bos_id=BOS,
                eos_id=EOS,
                unk_surface=REPLACEMENT,
                control_symbols=[MASK_PIECE] if mask else [],
                minloglevel=2,  # errors only
            )
        except RuntimeError as error:
            raise VocabularyError(_explain(size, 4 + mask, str(error))) from error
        return cls(file.getvalue())

    @classmethod
    def load(cls, path):
        """The vocabulary in a file, which holds its ``model``.

        Raises:
            VocabularyError: the file holds something else, or not all of it.
            OSError: there is no such file, or it is none to be read: see :func:`read_regular`.
        """
        try:
            return cls(read_regular(path, LARGEST))
        except VocabularyError as error:
            raise VocabularyError(f"{path}: {error}") from error

    def __len__(self):
        return len(self._processor)

    def encode(self, text, most=None):
        """The ids of one text, without BOS and EOS. Neighbouring unknown characters are one UNK.

        Args:
            most: how many of the ids, from the first on, are asked for; by default all. Of a text
                that has far more only the beginning is cut into pieces. Where that ends within a
                word, one of more characters than ``most`` of the longest pieces have, the last ids
                may be others than with the whole word.
        """
        text = normalized(text)
        return self._processor.encode(text if most is None else self._beginning(text, most))[:most]

    def _beginning(self, text, most):
        """So much of a text that it has the first ``most`` ids, whatever its pieces are."""
        enough = self._longest * most
        if len(text) <= enough:
            return text
        text = self._squeezed(text)
        end = text.find(" ", enough)
        return text[: min(2 * enough, end if end >= 0 else len(text))]

    def located(self, text):
        """The ids of one text, and where in :func:`normalized` text each piece ends.

        Returns:
            ids and ends, two lists. A piece holds its characters up to the one before its end, and
            the blank before a word is the first of them.
        """
        text = normalized(text)
        pieces = self._processor.encode(text, out_type=str)  # unknown characters as they are
        ends = np.cumsum([len(piece) for piece in pieces], dtype=int) - 1  # text has no first BLANK
        return self._processor.encode(text), ends.tolist()

    def surely_has_more(self, text, most):
        """Whether the length of a text tells that it has more than ``most`` ids, however it is cut.

        That is known without cutting it: no piece has more characters than the longest one.
        """
        enough = self._longest * most
        if len(text) < enough:
            return False
        text = self._squeezed(normalized(text))
        return len(text) + bool(text) > enough  # and the blank before the first word

    def _squeezed(self, text):
        """The text with one unknown character for each run of them: that has the same ids."""
        return self._unknown_run.sub(r"\1", text)

    def encode_all(self, texts, dropout=0.0, seed=None):
        """The ids of each text.

        Args:
            dropout: p of BPE-dropout: the probability that a possible merge is forbidden.
            seed: of the dropout, an integer or a NumPy generator. The same seed and texts give the
                same ids, in any process.

        Raises:
            ValueError: dropout is out of range, or has no seed.
        """
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout={dropout} must lie in 0 <= dropout < 1")
        texts = [normalized(text) for text in texts]
        if dropout == 0:
            return self._processor.encode(texts)
        if seed is None:
            raise ValueError("dropout needs a seed, an integer or a NumPy generator")

        sentences = [text.split() for text in texts]
        words = [BLANK + word for sentence in sentences for word in sentence]
        ids, counts = self._dropout(words, dropout, np.random.default_rng(seed))
        ids = ids.tolist()
        word = np.cumsum([0, *map(len, sentences)])  # where in words each sentence begins
        piece = np.concatenate([[0], np.cumsum(counts)])  # where in ids each word begins
        return [ids[begin:end] for begin, end in pairwise(piece[word].tolist())]

    def encode_with_gaps(self, text):
        """The ids of a text in which MASK stands where pieces are left out.

        A gap is three underscores or more, and one piece, whose id is to be found. Like any piece
        it begins a word if there is a blank before it, and is a part of one if not. What stands
        around it in its word is cut as a text is.

        Returns:
            ids; and for each gap whether it begins a word.

        Raises:
            VocabularyError: there is no MASK.
        """
        require_mask(self)
        parts, begins = [], []  # of words; None is a gap
        for word in normalized(text).split():
            head, *rest = GAP.split(word)
            parts += [BLANK + head] * bool(head or not rest)
            for i, part in enumerate(rest):
                parts += [None, *[part] * bool(part)]
                begins.append(not head and i == 0)
        known = [part for part in parts if part is not None]
        ids, counts = self._dropout(known, 0.0, np.random.default_rng(0))  # 0.0: nothing is dropped
        cut = iter(np.split(ids, np.cumsum(counts)))
        return [
            i for part in parts for i in ([MASK] if part is None else next(cut).tolist())
        ], begins

    def decode(self, ids):
        """The text of ids up to the first EOS; UNK is REPLACEMENT, PAD, BOS and MASK nothing."""
        ids = [int(i) for i in ids]
        ids = ids[: ids.index(EOS)] if EOS in ids else ids
        return self._processor.decode(ids)

    def pieces(self, ids):
        """The piece of each id as a string, to look at; BLANK marks where a word begins."""
        return [self._processor.id_to_piece(int(i)) for i in ids]


def require_mask(vocabulary):
    """Raise a VocabularyError where a vocabulary has no MASK."""
    if not vocabulary.has_mask:
        raise VocabularyError(
            "this vocabulary has no mask, the id that stands for a piece left out; take that of a "
            "masked language model"
        )


def _sentencepiece():
    return library("sentencepiece", "text")


def whole_characters(text):
    """The text with a sign for what is no character, half a surrogate pair, as a library has it."""
    return text.encode(errors="replace").decode()


def normalized(text):
    """A text as pieces see it: its accents composed, one space for any run of blanks."""
    for sign in RESERVED:
        text = text.replace(sign, " ")
    text = whole_characters(text)
    if len(text) > LONG and not unicodedata.is_normalized("NFC", text):
        text = _marks_in_order(text)
    return " ".join(unicodedata.normalize("NFC", text).split())


def _marks_in_order(text):
    """The text decomposed, with the marks on each letter in the order that Unicode gives them.

    ``unicodedata`` orders them by insertion, in a time that grows with the square of their number.
    """
    decomposed = "".join(unicodedata.normalize("NFD", character) for character in text)
    runs = groupby(decomposed, key=lambda character: unicodedata.combining(character) > 0)
    return "".join("".join(sorted(run, key=unicodedata.combining)) for _, run in runs)


def _explain(size, special, message):
    """What sentencepiece says when it cannot learn ``size`` pieces, in terms of what to do.

    Args:
        special: how many of them are no text.
    """
    if most := re.search(r"value <= (\d+)", message):
        return (
            f"these texts give no more than {most[1]} pieces, and {size} were asked for; "
            f"lower vocabulary_size to {most[1]} (--vocabulary-size {most[1]})"
        )
    if fewest := re.search(r"required_chars\. \d+ vs (\d+)", message):
        return (
            f"these texts need {fewest[1]} pieces or more, one for each of their characters and "
            f"{special} special ones; asked for {size}; raise vocabulary_size to {fewest[1]} "
            f"(--vocabulary-size {fewest[1]})"
        )
    if "insert_id" in message:
        return f"a vocabulary of {size} pieces has no room for its special ones; ask for more"
    if "sentences_.empty()" in message:
        return "there is no text to learn a vocabulary from"
    return f"cannot learn a vocabulary of {size} pieces: {message}"
