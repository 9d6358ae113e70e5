"""What the tasks of text have in common: a corpus, a vocabulary, and rows of one text each."""

import hashlib
from dataclasses import dataclass
from typing import ClassVar

from minitransformer.core.workers import ONE_WORKER
from minitransformer.data.text.vocabulary import PAD, Vocabulary
from minitransformer.inference.trained import OF_TEXT
from minitransformer.loss.cross_entropy import cross_entropy
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
    kept_files: ClassVar[dict] = OF_TEXT

    @classmethod
    def require_sense(cls, recipe):
        super().require_sense(recipe)
        config = config_class(recipe.model["kind"])
        config.of_vocabulary(recipe.data.vocabulary_size, **recipe.choices())

    @staticmethod
    def fingerprint(examples):
        digest = hashlib.sha256()
        for texts in examples:
            # Lines, which is what pairs were read from: no text of them has a line feed.
            digest.update("".join(f"{text}\n" for text in texts).encode())
        kind = "pairs" if len(examples[0]) == 2 else "texts"
        return f"{len(examples):,} {kind} of SHA-256 {digest.hexdigest()}"

    @staticmethod
    def texts(examples):
        """The texts of examples that a vocabulary is learned from."""
        return [text for example in examples for text in example]

    @classmethod
    def keep(cls, examples, recipe):
        size = recipe.data.vocabulary_size
        return {"vocabulary": Vocabulary.train(cls.texts(examples), size, mask=cls.needs_mask)}

    @staticmethod
    def fitting(kept):
        return {"vocabulary_size": len(kept["vocabulary"])}

    @classmethod
    def of_data(cls, recipe, examples, validation, kept):
        return config_class(recipe.model["kind"]).sizes(len(kept["vocabulary"]))

    def num_classes(self, model):
        return len(model.output_projection.weight.data)


def require_rows(recipe, framed=False):
    """Refuse what does not go with rows of one text each, ``max_length`` tokens at most.

    Args:
        framed: whether two of these are the symbols for beginning and end.

    Raises:
        RecipeError: a row may be larger than a batch, or has room for no text; or a field is for
            pairs alone.
    """
    longest, batch_tokens = recipe.model["max_length"], recipe.training.batch_tokens
    if recipe.training.subword_dropout:
        raise RecipeError("subword_dropout is for translators; leave it out")
    if longest > batch_tokens:
        raise RecipeError(
            f"a row may have max_length={longest} tokens, and a batch has "
            f"batch_tokens={batch_tokens}; raise batch_tokens"
        )
    if framed and longest < 3:
        raise RecipeError(
            f"max_length={longest} leaves no room between the symbols for the beginning and "
            "the end of a sentence; choose 3 or more"
        )


def one_pass(model, batches, workers=ONE_WORKER, count=lambda logits, labels: 0):
    """What there is to know of the logits of batches, without dropout, in one pass over them.

    Args:
        batches: with ``labels`` and ``num_tokens``.
        workers: Workers that share the batches, each cut into as many parts as in a training.
        count: a function of the logits (B, T, V) of a part and its labels (B, T).

    Returns:
        the NLL of the labels in nats a token, and the sum of what ``count`` returns; both are added
        up in the order of the parts, whoever works on them.
    """
    num_tokens = sum(batch.num_tokens for batch in batches)
    parts = [part for batch in batches for part in batch.split(workers.count) if part.num_tokens]

    def of_part(part):
        logits, _ = model.logits(*model.inputs(part))
        (_, nll), _ = cross_entropy(logits, part.labels, 0.0, PAD, num_tokens)
        return float(nll), count(logits, part.labels)

    found = workers.map(of_part, parts)
    return sum(nll for nll, _ in found), sum(counted for _, counted in found)
