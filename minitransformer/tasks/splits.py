"""The splits of each corpus that a recipe can name: to train on, to validate and to test with."""

from minitransformer.core.errors import InputError
from minitransformer.data.text.corpus import read_parallel
from minitransformer.data.text.multi30k import load_multi30k
from minitransformer.data.text.toy import toy_corpus
from minitransformer.training.recipe import DataConfig, RecipeError

TEST_SPLITS = {"toy": "test", "multi30k": "test_2016_flickr", "files": "validation"}


def load_split(data, split, *, strict=True):
    """The pairs of ``"train"``, ``"validation"`` or a test split.

    Args:
        data: DataConfig.
        split: a split of the corpus.
        strict: as for :func:`read_parallel`.

    Raises:
        CorpusError: the corpus cannot be read.
        RecipeError: the recipe does not say where its files are, or names a text for another task.
        ValueError: the corpus has no such split or no such languages.
    """
    data.require_no_labels()
    if data.corpus == "text":
        raise RecipeError(
            "corpus='text' has no pairs to translate; take 'files', or the recipe gpt, whose model "
            "goes on with a text"
        )
    if data.text:
        raise RecipeError(
            f"text={data.text!r} is for corpus='text', and here it is {data.corpus!r}; leave out "
            "text, or take the recipe gpt"
        )
    if data.corpus == "toy":
        return _load_toy(split, data.languages)
    if data.corpus == "multi30k":
        return load_multi30k(split, data.data_dir or None, data.languages)
    if data.languages != DataConfig.languages:
        raise RecipeError("corpus='files' has the languages of its files; leave out languages")
    files = {
        "train": (data.train_source, data.train_target),
        "validation": (data.validation_source, data.validation_target),
    }
    if split not in files:
        raise InputError(f"there is no split {split!r}; choose one of {', '.join(files)}")
    if not all(files[split]):
        raise RecipeError(
            f"corpus='files' needs two text files: set {split}_source and {split}_target"
        )
    return read_parallel(*files[split], strict=strict)


def _load_toy(split, languages):
    if languages not in ("de-en", "en-de"):
        raise InputError(f"languages={languages!r}; the toy corpus has 'de-en' and 'en-de'")
    corpus = toy_corpus()
    if split not in corpus:
        raise InputError(
            f"the toy corpus has no split {split!r}; choose one of {', '.join(corpus)}"
        )
    if languages == "de-en":
        return corpus[split]
    return [(english, german) for german, english in corpus[split]]
