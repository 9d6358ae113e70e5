"""What the tasks of text have in common: a corpus, a vocabulary, and rows of one text each."""

import hashlib
from dataclasses import dataclass
from typing import ClassVar

from minitransformer.core.errors import InputError
from minitransformer.data.text.vocabulary import Vocabulary
from minitransformer.inference.trained_on_text import OF_TEXT
from minitransformer.models.registry import config_class
from minitransformer.tasks.settings import Data, RecipeError
from minitransformer.tasks.task import Task

PATHS = (
    "train_source",
    "train_target",
    "validation_source",
    "validation_target",
    "data_dir",
    "text",
    "labelled",
)
# A release before each task had settings of its own wrote those of all of them into every recipe,
# by default so; and its checkpoints note them.
FORMER = {
    **dict.fromkeys(PATHS, ""),
    "languages": "de-en",
    "labels": "",
    "labelled_share": 1.0,
    "unit": "subwords",
    "max_tokens": 256,
}


@dataclass(frozen=True)
class TextData(Data):
    """The text that is learned from.

    Attributes:
        vocabulary_size: subwords, shared by all languages; of characters all have an id.
    """

    paths: ClassVar[tuple] = PATHS
    former: ClassVar[dict] = FORMER

    vocabulary_size: int = 8000


class TextTask(Task):
    """The base of the tasks of text, whose runs keep a vocabulary.

    Examples are tuples of texts, one or more, all of one length.

    Attributes:
        needs_mask: whether its vocabularies have a MASK.
    """

    Data = TextData
    needs_mask: ClassVar[bool] = False
    unit: ClassVar[str] = "token"
    uses: ClassVar[tuple] = ("consistency",)
    kept_files: ClassVar[dict] = OF_TEXT

    @classmethod
    def require_sense(cls, recipe):
        super().require_sense(recipe)
        config = config_class(recipe.model["kind"])
        try:
            config.of_vocabulary(recipe.data.vocabulary_size, **recipe.choices())
        except InputError as error:
            raise RecipeError(str(error)) from error

    @staticmethod
    def fingerprint(examples):
        digest = hashlib.sha256()
        for texts in examples:
            # Lines, which is what pairs were read from: no text of them has a line feed.
            digest.update("".join(f"{text}\n" for text in texts).encode())
        kind = "pairs" if len(examples[0]) == 2 else "texts"
        return f"{len(examples):,} {kind} of SHA-256 {digest.hexdigest()}"

    @staticmethod
    def texts(examples, validation):
        """The texts that a vocabulary is learned from: those of the examples to train on."""
        return [text for example in examples for text in example]

    @classmethod
    def keep(cls, recipe, examples, validation):
        texts, size = cls.texts(examples, validation), recipe.data.vocabulary_size
        return {"vocabulary": Vocabulary.train(texts, size, mask=cls.needs_mask)}

    @staticmethod
    def fitting(kept):
        return {"vocabulary_size": len(kept["vocabulary"])}

    @classmethod
    def of_data(cls, recipe, examples, validation, kept):
        vocabulary = kept["vocabulary"]
        sizes = config_class(recipe.model["kind"]).sizes(len(vocabulary))
        return sizes | {"pad_id": vocabulary.pad_id}

    def num_classes(self, model):
        return len(model.output_projection.weight.data)


def require_rows(recipe, limit="max_length", or_else="", framed=False):
    """Refuse what does not go with rows of one text each, of so many tokens at most.

    Args:
        limit: the field that says how many.
        or_else: what else there is to do, in words.
        framed: whether two of these are the symbols for beginning and end.

    Raises:
        RecipeError: a row may be larger than a batch, or has room for no text.
    """
    longest, batch_tokens = recipe.values()[limit], recipe.training.batch_tokens
    if longest > batch_tokens:
        raise RecipeError(
            f"a row may have {limit}={longest} tokens, and a batch has "
            f"batch_tokens={batch_tokens}; raise batch_tokens{or_else}"
        )
    if framed and longest < 3:
        raise RecipeError(
            f"max_length={longest} leaves no room between the symbols for the beginning and "
            "the end of a sentence; choose 3 or more"
        )
