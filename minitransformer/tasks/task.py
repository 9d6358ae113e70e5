"""What a training is about: its batches, and how what comes of it is judged.

The Trainer knows no more of it than a Task answers. A configuration of a model names its task.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from minitransformer.core.workers import ONE_WORKER
from minitransformer.data.text.vocabulary import PAD
from minitransformer.loss.cross_entropy import cross_entropy
from minitransformer.models.registry import imported

EXPLODED = 4.0  # times the loss of guessing

TASKS = {
    "translation": "minitransformer.tasks.translation:Translation",
    "language modelling": "minitransformer.tasks.language_modelling:LanguageModelling",
    "masked language modelling": (
        "minitransformer.tasks.masked_language_modelling:MaskedLanguageModelling"
    ),
    "tagging": "minitransformer.tasks.tagging:Tagging",
}


@dataclass(frozen=True)
class Score:
    """The number by which one epoch is better than another.

    Attributes:
        name: in the log and in checkpoints, ``"bleu"``.
        label: in words, ``"BLEU"``.
        more_is_better: or less is.
        digits: that are shown, behind the point.
    """

    name: str
    label: str
    more_is_better: bool = True
    digits: int = 1

    def better(self, value, other):
        """Whether ``value`` is better than ``other``."""
        return value > other if self.more_is_better else value < other

    def shown(self, value):
        """``value`` as it is printed."""
        return f"{value:.{self.digits}f}"


class Task:
    """The base of all tasks; a subclass answers what is not answered here.

    ``Subclass(recipe, vocabulary, examples, validation, progress)`` is made of a Recipe, a
    Vocabulary, what ``read`` has read, and reports to ``progress``. A batch is whatever the loss of
    its models takes: a dataclass, whose arrays are sent to a GPU. It has ``num_tokens``, of which
    the losses of a step are the mean, and ``split(count)``, its rows dealt out to shards: without
    tokens where there are too few.

    Attributes:
        score: the Score that decides which epoch is the best.
        command: of the command line, which tries a model of this task.
        needs_mask: whether its vocabularies have a MASK.
        has_tests: whether its corpora have splits to test with; what has none is validated again.
        workers: Workers that share a validation; neither their threads nor the processes behind
            them change a bit of its scores.
    """

    score: ClassVar[Score]
    command: ClassVar[str]
    needs_mask: ClassVar[bool] = False
    has_tests: ClassVar[bool] = False
    workers = ONE_WORKER

    @staticmethod
    def require_libraries():
        """Look for what the first validation needs, before any work is done.

        Raises:
            MissingLibraryError: there is none.
        """

    @staticmethod
    def read(recipe, progress):
        """(examples to train on, others to validate with): lists of tuples of texts.

        Raises:
            CorpusError, RecipeError, ValueError: there are none, or the recipe makes no sense.
        """
        raise NotImplementedError

    @staticmethod
    def texts(examples):
        """The texts of examples that a vocabulary is learned from."""
        return [text for example in examples for text in example]

    @staticmethod
    def of_data(examples, validation):
        """The fields of a model's configuration that the examples decide, a dict."""
        return {}

    def batches(self, epoch):
        """The batches of an epoch, counted from 0, an iterable; the same each time."""
        raise NotImplementedError

    def num_batches(self, epoch):
        """How many these are."""
        return len(self.batches(epoch))

    def left_out(self, epoch):
        """How many pairs an epoch lacks because subword dropout made them too long."""
        return 0

    def validate(self, model):
        """A dict of numbers, that of ``score`` by its name among them."""
        raise NotImplementedError

    def details(self):
        """Lines that say more of how good the model validated last is than its scores do."""
        return []

    def exploded(self, model):
        """A loss from which a training does not come back; log V is that of guessing."""
        return EXPLODED * math.log(len(model.output_projection.weight.data))


def task_class(config):
    """The class of the task that models of this configuration are trained for."""
    return imported(TASKS[config.task])


def mean_nll(model, batches, workers=ONE_WORKER):
    """The NLL of the labels in nats a token, without dropout; ``workers`` share the batches."""
    nll, _ = one_pass(model, batches, workers)
    return nll


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
