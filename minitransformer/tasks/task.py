"""What a training is about: its batches, and how what comes of it is judged.

The Trainer knows no more of it than a Task answers. A configuration of a model names its task.
"""

import hashlib
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from minitransformer.core.errors import InputError
from minitransformer.core.workers import ONE_WORKER, SMALLEST_SHARD
from minitransformer.loss.cross_entropy import NO_PADDING, cross_entropy
from minitransformer.models.registry import imported
from minitransformer.runs.attachments import KeptFile
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.settings import Data, RecipeError

EXPLODED = 4.0  # times the loss of guessing
FEW = 100  # classes, of which guessing costs little
OF_SOME = "consistency", "subword_dropout"  # fields of a training that not all tasks have a use for

TASKS = {
    "translation": "minitransformer.tasks.translation:Translation",
    "language modelling": "minitransformer.tasks.language_modelling:LanguageModelling",
    "masked language modelling": (
        "minitransformer.tasks.masked_language_modelling:MaskedLanguageModelling"
    ),
    "tagging": "minitransformer.tasks.tagging:Tagging",
    "classification": "minitransformer.tasks.classification:Classification",
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

    def best(self, values, key=None):
        """The best of some values, the first of those that are as good."""
        return (max if self.more_is_better else min)(values, key=key)

    def worst(self, values):
        """The worst of some values."""
        return (min if self.more_is_better else max)(values)

    def shown(self, value):
        """``value`` as it is printed."""
        return f"{value:.{self.digits}f}"


class Task:
    """The base of all tasks; a subclass answers what is not answered here.

    ``Subclass(recipe, kept, examples, validation, progress)`` is made of a Recipe, of what ``keep``
    has made and what ``read`` has read, and reports to ``progress``. A batch is whatever the loss
    of its models takes, a dataclass, whose arrays are sent to a GPU. It has ``num_tokens``, of
    which the losses of a step are the mean, and ``split(count)``, its rows dealt out to shards:
    without tokens where there are too few.

    Attributes:
        Data: the class of its data settings.
        score: the Score that decides which epoch is the best.
        command: of the command line, which tries a model of this task.
        tries: what that command needs beside the folder of a run.
        unit: one of what a batch's ``num_tokens`` counts, in words.
        smallest_shard: of what a batch's ``num_tokens`` counts, into which it is cut by itself.
        uses: those of OF_SOME that a training of this task may have.
        kept_files: of what ``keep`` makes, by the same names, a KeptFile each.
        splits: of the corpora that have one to test with, its name, by theirs.
        validation_batches: what it is validated with, a list.
        workers: Workers that share a validation; neither their threads nor the processes behind
            them change a bit of its scores.
    """

    Data: ClassVar[type] = Data
    score: ClassVar[Score]
    command: ClassVar[str] = "evaluate"
    tries: ClassVar[str] = ""
    unit: ClassVar[str] = "example"
    smallest_shard: ClassVar[int] = SMALLEST_SHARD
    uses: ClassVar[tuple] = ()
    kept_files: ClassVar[dict[str, KeptFile]] = {}
    splits: ClassVar[dict[str, str]] = {}
    workers = ONE_WORKER

    @classmethod
    def require_sense(cls, recipe):
        """Look whether fields of a recipe go together, and all is installed, before any work.

        Raises:
            RecipeError, ValueError: they do not.
            MissingLibraryError: a validation needs one that is not there.
        """
        recipe.data.require_sense()
        for name in OF_SOME:
            if getattr(recipe.training, name) and name not in cls.uses:
                tasks = [task for task in TASKS if name in imported(TASKS[task]).uses]
                raise RecipeError(f"{name} is for {', '.join(tasks)}; leave it out")

    @staticmethod
    def read(recipe, progress):
        """(examples to train on, others to validate with), as ``fingerprint`` takes them.

        Raises:
            InputError: there are none, or the recipe makes no sense.
        """
        raise NotImplementedError

    @staticmethod
    def read_split(recipe, split):
        """Examples of a split that no training sees, one of ``splits``, to test a model with.

        Raises:
            InputError: there is no such split.
        """
        raise InputError(f"corpus={recipe.data.corpus!r} has no split {split!r} to test with")

    @staticmethod
    def fingerprint(examples):
        """Examples in a few words, which differ where the examples do.

        Args:
            examples: arrays, numbers and texts, in lists and tuples.
        """
        digest = hashlib.sha256()
        _add_to(digest, examples)
        return f"of SHA-256 {digest.hexdigest()}"

    @classmethod
    def keep(cls, recipe, examples, validation):
        """What a new run has to keep beside the parameters, by name: made of what it learns from.

        The validation says what the examples alone may not, such as that labels are those of words.
        """
        return {}

    @staticmethod
    def fitting(kept):
        """The fields of a recipe that fit what another run keeps, by name.

        A run that begins with that one keeps the same; or, where there are none, what is its own.
        """
        return {}

    @classmethod
    def of_data(cls, recipe, examples, validation, kept):
        """The fields of a model's configuration that no recipe has, a dict."""
        return {}

    def batches(self, epoch):
        """An iterable of the batches of an epoch, counted from 0; the same each time."""
        raise NotImplementedError

    def num_batches(self, epoch):
        """How many there are."""
        return sum(1 for _ in self.batches(epoch))

    def left_out(self, epoch):
        """How many examples an epoch lacks because they became too long in it."""
        return 0

    def validate(self, model):
        """A dict of numbers, that of ``score`` by its name among them."""
        raise NotImplementedError

    def details(self):
        """Lines that say more of how good the model validated last is than its scores do."""
        return []

    def num_classes(self, model):
        """Among how many answers the model guesses."""
        raise NotImplementedError

    def hopeless(self, model):
        """A loss from which a training does not come back; log of the classes is to guess.

        Of a few classes, a small batch may cost ten times as much in a training that goes well.
        """
        return EXPLODED * math.log(max(FEW, self.num_classes(model)))


def run_at(path):
    """The RunFolder at ``path``, which has a run, with what runs of its task keep.

    Raises:
        RunError, OSError: as for :meth:`RunPaths.load_config`.
    """
    config, _ = RunFolder(path).load_config()
    return RunFolder(path, task_class(config).kept_files)


def task_class(config):
    """The class of the task that models are trained for, of their configuration or its class."""
    return imported(TASKS[config.task])


def one_pass(model, batches, workers=ONE_WORKER, count=lambda logits, labels: 0):
    """What there is to know of the logits of batches, without dropout, in one pass over them.

    Args:
        model: with ``inputs`` and ``logits``, as a TokenModel has them.
        batches: with ``labels`` and ``num_tokens``, and with ``pad_id``, the label where there is
            nothing to say, if that may be.
        workers: Workers that share the batches, each cut into as many parts as these are.
        count: a function of the logits (B, ..., V) of a part and its labels (B, ...).

    Returns:
        the NLL of the labels in nats, a mean, and the sum of what ``count`` returns; both are added
        up in the order of the parts, whoever works on them.
    """
    num_tokens = sum(batch.num_tokens for batch in batches)
    parts = [part for batch in batches for part in batch.split(workers.count) if part.num_tokens]

    def of_part(part):
        logits, _ = model.logits(*model.inputs(part))
        pad_id = getattr(part, "pad_id", NO_PADDING)
        (_, nll), _ = cross_entropy(logits, part.labels, 0.0, pad_id, num_tokens)
        return float(nll), count(logits, part.labels)

    found = workers.map(of_part, parts)
    return sum(nll for nll, _ in found), sum(counted for _, counted in found)


def _add_to(digest, value):
    if isinstance(value, list | tuple):
        digest.update(f"{len(value)} of ".encode())
        for part in value:
            _add_to(digest, part)
    else:
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise TypeError(f"a {type(value).__name__} cannot be told from others by its bytes")
        digest.update(f"{array.dtype.str}{array.shape}".encode() + array.tobytes())
