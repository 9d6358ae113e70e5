"""The task of going on with a text: each token is to be told from those before it.

A text is one long row of ids, and an epoch cuts it into windows of as much as is seen at once.
Where the first one begins is drawn anew for each epoch, so that no token is always the first of its
window, which knows nothing of what came before.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from minitransformer.core.settings import not_negative, one_of
from minitransformer.data.text.batches import LabelledBatch
from minitransformer.data.text.characters import CharacterVocabulary
from minitransformer.data.text.corpus import CorpusError, read_text
from minitransformer.data.text.vocabulary import PAD, Vocabulary
from minitransformer.tasks.settings import RecipeError
from minitransformer.tasks.splits import ParallelData, load_split
from minitransformer.tasks.task import Score, one_pass
from minitransformer.tasks.text import TextTask, require_rows

HELD_OUT = 0.1  # of a text, from its end: what validates


@dataclass(frozen=True)
class LanguageModellingData(ParallelData):
    """Texts, or the target side of pairs of them.

    Attributes:
        corpus: ``"toy"``, ``"multi30k"``, ``"files"`` for four, or ``"text"`` for one.
        text: a text file, plain or .gz, whose last tenth chooses the epoch.
        unit: of which texts are made: ``"subwords"``, ``"characters"``, or ``"tokens"``, those of
            the vocabulary with which a model of others comes.
        context: tokens that are seen at once, if the model can, whose max_length is the most; 0 is
            that.
    """

    corpora: ClassVar[dict] = {**ParallelData.corpora, "text": (("text",), ())}

    text: str = ""
    unit: str = one_of(("subwords", "characters", "tokens"), "subwords")
    context: int = not_negative(0)


class LanguageModelling(TextTask):
    """Learns to say what comes next; is validated by the perplexity of a text it has not seen."""

    Data = LanguageModellingData
    score = Score("perplexity", "perplexity", more_is_better=False, digits=2)
    command = "generate"
    unknown = 0.0  # of the tokens that validate, how many the vocabulary does not know

    def __init__(self, recipe, kept, examples, validation, progress):
        vocabulary = kept["vocabulary"]
        self.training = recipe.training
        self.context = _context(recipe)
        self.pad_id = vocabulary.pad_id
        self.stream = of_validation = stream_of(vocabulary, examples)
        if validation is not examples:
            of_validation = stream_of(vocabulary, validation)
        unknown = -1 if vocabulary.unknown is None else vocabulary.unknown
        self.unknown = float((of_validation == unknown).mean())
        starts = np.arange(0, len(of_validation) - 1, self._length(of_validation))
        self.validation_batches = list(self._cut(of_validation, starts))
        # An end symbol counts as a character: it stands where the text has a line end.
        characters = sum(len(text) + 1 for (text,) in validation)
        self.characters_per_token = characters / (len(of_validation) - 1)  # the first is not said
        progress.say(
            f"an epoch: {len(self.stream):,} tokens in {self.num_batches(0):,} batches; "
            f"validation: {len(of_validation):,} tokens"
        )
        for note in (*self.details(), *_marks_in(examples, vocabulary)):
            progress.say(note)

    @classmethod
    def require_sense(cls, recipe):
        super().require_sense(recipe)
        recipe.data.require_used()
        if _context(recipe) < recipe.model["max_length"]:
            require_rows(recipe, "context", ", or lower context")
        else:
            require_rows(recipe, or_else=", or give --context, of less")

    @staticmethod
    def read(recipe, progress):
        examples, validation = load_texts(recipe.data)
        counts = [sum(len(text) for (text,) in texts) for texts in (examples, validation)]
        progress.say("training text: {:,} characters; validation: {:,}".format(*counts))
        return examples, validation

    @classmethod
    def keep(cls, recipe, examples, validation):
        if recipe.data.unit == "characters":
            return {"vocabulary": CharacterVocabulary.train(cls.texts(examples, validation))}
        if recipe.data.unit == "tokens":
            raise RecipeError(
                "unit='tokens' are those of a model of others, and this training begins with none; "
                "give --from FOLDER, or another --unit"
            )
        return super().keep(recipe, examples, validation)

    @staticmethod
    def fitting(kept):
        return TextTask.fitting(kept) | {"unit": unit_of(kept["vocabulary"])}

    def batches(self, epoch):
        rng = np.random.default_rng((self.training.seed, epoch))
        length = self._length(self.stream)
        # As many windows in every epoch, wherever the first begins.
        first = int(rng.integers(max(1, min(length, len(self.stream) - length))))
        count = max(1, (len(self.stream) - length) // length)
        starts = np.arange(first, len(self.stream) - 1, length)[:count]
        return self._cut(self.stream, rng.permutation(starts))

    def _cut(self, stream, starts):
        length = self._length(stream)
        rows = max(1, self.training.batch_tokens // length)
        return batches_of(stream, starts, length, rows, self.pad_id)

    def _length(self, stream):
        """How long windows of a stream are."""
        return min(self.context, len(stream) - 1)

    def validate(self, model):
        nll, _ = one_pass(model, self.validation_batches, self.workers)
        return {
            "nll": nll,
            "perplexity": perplexity(nll),
            "bits_per_character": nll / math.log(2) / self.characters_per_token,
        }

    def details(self):
        if not self.unknown:
            return []
        return [f"{self.unknown:.1%} of the tokens of this text are unknown to the vocabulary"]


def _context(recipe):
    """How many tokens are seen at once."""
    most = recipe.model["max_length"]
    return min(recipe.data.context or most, most)


def _marks_in(examples, vocabulary):
    """Lines that say of a text with marks of a vocabulary that they are read as letters."""
    marks = getattr(vocabulary, "special", {})
    found = [mark for mark in marks if any(mark in text for (text,) in examples)]
    return [f"{mark} in this text is read as letters, not as a mark" for mark in found]


def perplexity(nll):
    """Among how many tokens, all as likely, one would have to guess to do as well."""
    return math.exp(min(nll, 700))  # as far as there are numbers


def load_texts(data):
    """(texts to train on, texts to validate with), lists of tuples of one text each.

    Of parallel corpora it is the target's side, a line a text. A text file is one text; or, where
    the unit is the subword, which knows no line end, each of its lines that is not blank is one.

    Raises:
        CorpusError: a file cannot be used, or there is too little in it.
        RecipeError, ValueError: the recipe does not say where the text is, or as for
            :func:`load_split`.
    """
    data.require_sense()
    data.require_used()
    if data.corpus == "text":
        parts = _parts_of_file(data)
    else:
        splits = load_split(data, "train"), load_split(data, "validation")
        parts = tuple([(target,) for _, target in pairs] for pairs in splits)
    for part, purpose in zip(parts, ("train on", "validate with"), strict=True):
        if not any(text.strip() for (text,) in part):
            where = data.text or f"corpus={data.corpus!r}"
            raise CorpusError(f"{where} has too little text: none to {purpose}; give more of it")
    return parts


def _parts_of_file(data):
    """A text file cut in two before its last tenth: at a line end of its second half, if any."""
    text = read_text(data.text)
    end = round((1 - HELD_OUT) * len(text))
    end = text.rfind("\n", len(text) // 2, end) + 1 or end
    parts = text[:end], text[end:]
    return tuple(_texts_in(part, data.unit) for part in parts)


def texts_of(path, unit):
    """The texts in a file, a list of tuples of one text each.

    Raises:
        CorpusError: there are none, or the file cannot be read.
    """
    text = read_text(path)
    if not text.strip():
        raise CorpusError(f"{path} has no text")
    return _texts_in(text, unit)


def _texts_in(text, unit):
    if unit != "subwords":
        return [(text,)]
    return [(line,) for line in text.split("\n") if line.strip()]


def stream_of(vocabulary, examples):
    """All texts as one row of ids (N,), int32, between them and around them the mark of a new text.

    Raises:
        CorpusError: that is less than two, so nothing is to be said.
    """
    mark = vocabulary.begins or vocabulary.ends[:1]
    ids = [*mark]
    for encoded in vocabulary.encode_all([text for (text,) in examples]):
        ids += [*encoded, *mark]
    if len(ids) < 2:
        raise CorpusError("this text is a single token, after which nothing comes; give more of it")
    return np.array(ids, np.int32)


def batches_of(stream, starts, length, rows, pad_id=PAD):
    """Yield batches of windows of a stream, so many rows in each; one that ends early is alone."""
    whole = starts + length < len(stream)
    for i in range(0, whole.sum(), rows):
        yield windows(stream, starts[whole][i : i + rows], length, pad_id)
    for start in starts[~whole]:
        yield windows(stream, np.array([start]), len(stream) - 1 - start, pad_id)


def windows(stream, starts, length, pad_id=PAD):
    """Windows of a stream of ids (N,), ``length`` long, that begin at ``starts``.

    What the model sees are the tokens, and what it has to say the token that follows each of them.
    """
    at = starts[:, None] + np.arange(length + 1)  # (B, T + 1)
    ids = stream[at].astype(np.int32)
    return LabelledBatch.of(ids[:, :-1], ids[:, 1:], pad_id)


def unit_of(vocabulary):
    """The ``unit`` of texts that a vocabulary is of."""
    units = {Vocabulary: "subwords", CharacterVocabulary: "characters"}
    return units.get(type(vocabulary), "tokens")
