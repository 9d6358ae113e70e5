"""The splits of each corpus that a recipe can name: to train on, to validate and to test with."""

from dataclasses import dataclass
from typing import ClassVar

from minitransformer.core.errors import require_one_of
from minitransformer.data.text.corpus import read_parallel
from minitransformer.data.text.multi30k import load_multi30k
from minitransformer.data.text.toy import toy_corpus
from minitransformer.tasks.text import TextData

TEST_SPLITS = {"toy": "test", "multi30k": "test_2016_flickr", "files": "validation"}


@dataclass(frozen=True)
class ParallelData(TextData):
    """Text in two languages.

    Attributes:
        corpus: ``"toy"``, ``"multi30k"``, or ``"files"`` for the four paths below.
        languages: source and target: two of de, en, fr and cs for Multi30k, de and en for toy.
        train_source, train_target: text to train on: files, one sentence a line, plain or .gz.
        validation_source, validation_target: the same for the text that chooses the epoch.
        data_dir: folder with a local copy of Multi30k; empty for a download.
    """

    corpora: ClassVar[dict] = {
        "toy": ((), ("languages",)),
        "multi30k": ((), ("languages", "data_dir")),
        "files": (("train_source", "train_target", "validation_source", "validation_target"), ()),
    }

    corpus: str = "multi30k"
    languages: str = "de-en"
    train_source: str = ""
    train_target: str = ""
    validation_source: str = ""
    validation_target: str = ""
    data_dir: str = ""


def load_split(data, split, *, strict=True):
    """The pairs of ``"train"``, ``"validation"`` or a test split.

    Args:
        data: ParallelData.
        split: a split of the corpus.
        strict: as for :func:`read_parallel`.

    Raises:
        CorpusError: the corpus cannot be read.
        RecipeError: the recipe does not say where its files are, or names some for nothing.
        ValueError: the corpus has no such split or no such languages.
    """
    data.require_sense()
    data.require_used()
    if data.corpus == "toy":
        return _load_toy(split, data.languages)
    if data.corpus == "multi30k":
        return load_multi30k(split, data.data_dir or None, data.languages)
    files = {
        "train": (data.train_source, data.train_target),
        "validation": (data.validation_source, data.validation_target),
    }
    require_one_of(files, "split", split)
    return read_parallel(*files[split], strict=strict)


def _load_toy(split, languages):
    require_one_of(("de-en", "en-de"), "languages", languages)
    corpus = toy_corpus()
    require_one_of(corpus, "split", split)
    if languages == "de-en":
        return corpus[split]
    return [(english, german) for german, english in corpus[split]]
