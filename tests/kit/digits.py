"""A model of pictures and its task, as a newcomer would add them: no text, and no tokens.

The pictures are made up here: of each digit one that is drawn at random, and noise on it.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from minitransformer.core.backend import like, to_host
from minitransformer.core.regular_file import written_whole
from minitransformer.layers.linear import Linear
from minitransformer.layers.relu import relu, relu_backward
from minitransformer.loss.cross_entropy import NO_PADDING, cross_entropy, cross_entropy_backward
from minitransformer.models.config import ModelConfig
from minitransformer.models.model import Model
from minitransformer.models.registry import KINDS
from minitransformer.tasks.settings import Data
from minitransformer.tasks.task import TASKS, KeptFile, Score, Task, one_pass


@dataclass(frozen=True)
class DigitsConfig(ModelConfig):
    """The sizes of a network with one hidden layer.

    Attributes:
        num_digits: how many there are, C.
        hidden: width of the hidden layer.
    """

    kind: ClassVar[str] = "digits"
    task: ClassVar[str] = "telling digits"
    of_data: ClassVar[tuple] = ("num_digits",)
    begins_with: ClassVar[tuple] = (kind,)
    own_head: ClassVar[tuple] = ("second.",)

    num_digits: int
    hidden: int = 16

    def num_parameters(self):
        return 64 * self.hidden + self.hidden + (self.hidden + 1) * self.num_digits


class Digits(Model):
    """Pictures (B, 8, 8) in, logits (B, C) out."""

    Config: ClassVar[type] = DigitsConfig

    def build(self, config, rng):
        self.first = Linear(64, config.hidden, rng)
        self.second = Linear(config.hidden, config.num_digits, rng)

    def inputs(self, batch):
        return (batch.pictures,)

    def logits(self, pictures, rng=None):
        x = like(pictures, self.flat.data).reshape(len(pictures), 64)
        h, first_cache = self.first.forward(x)  # (B, hidden)
        h, relu_cache = relu(h)
        logits, second_cache = self.second.forward(h)  # (B, C)
        return logits, (first_cache, relu_cache, second_cache)

    def backward(self, dlogits, cache):
        first_cache, relu_cache, second_cache = cache
        dh = self.second.backward(dlogits, second_cache)
        dx = self.first.backward(relu_backward(dh, relu_cache), first_cache)
        return dx.reshape(len(dx), 8, 8)

    def loss(self, batch, rng=None, *, smoothing=0.0, kappa=0.0, num_tokens=None):
        logits, cache = self.logits(batch.pictures)
        losses, loss_cache = cross_entropy(logits, batch.labels, smoothing, NO_PADDING, num_tokens)
        return losses, (cache, loss_cache)

    def loss_backward(self, dloss, cache):
        cache, loss_cache = cache
        self.backward(cross_entropy_backward(dloss, loss_cache), cache)


@dataclass(frozen=True, eq=False)
class Pictures:
    """B pictures.

    Attributes:
        pictures: (B, 8, 8), float32.
        labels: (B,), which digit each is.
    """

    pictures: np.ndarray
    labels: np.ndarray

    @property
    def num_tokens(self):
        return len(self.labels)

    def split(self, count):
        return [
            replace(self, pictures=self.pictures[i::count], labels=self.labels[i::count])
            for i in range(count)
        ]


@dataclass(frozen=True)
class DigitsData(Data):
    """Pictures that are made up.

    Attributes:
        per_digit: how many of each digit to train on.
        noise: on each picture.
    """

    corpora: ClassVar[dict] = {"drawn": ((), ())}

    corpus: str = "drawn"
    per_digit: int = 6
    noise: float = 0.5


def _save(path, mean):
    with written_whole(path) as file:
        np.save(file, mean)


class TellingDigits(Task):
    """Learns which digit a picture is of; a run keeps the mean of its pictures."""

    Data = DigitsData
    score = Score("accuracy", "accuracy", digits=4)
    unit = "picture"
    kept_files: ClassVar[dict] = {"mean": KeptFile("mean.npy", _save, np.load)}

    def __init__(self, recipe, kept, examples, validation, progress):
        self.training, self.mean = recipe.training, kept["mean"]
        self.examples = self._batch(*examples)
        self.validation_batches = [self._batch(*validation)]
        progress.say(f"an epoch: {len(examples[0])} pictures in {self.num_batches(0)} batches")

    @staticmethod
    def read(recipe, progress):
        rng = np.random.default_rng(recipe.training.seed)
        digits = rng.normal(size=(10, 8, 8))

        def drawn(count):
            labels = np.repeat(np.arange(10), count)
            noise = recipe.data.noise * rng.normal(size=(len(labels), 8, 8))
            return (digits[labels] + noise).astype(np.float32), labels

        return drawn(recipe.data.per_digit), drawn(2)

    @classmethod
    def keep(cls, recipe, examples, validation):
        return {"mean": examples[0].mean(axis=0)}

    @classmethod
    def of_data(cls, recipe, examples, validation, kept):
        return {"num_digits": int(examples[1].max()) + 1}

    def _batch(self, pictures, labels):
        return Pictures(pictures - self.mean, labels)

    def batches(self, epoch):
        """As many pictures in each as the settings have tokens."""
        rng = np.random.default_rng((self.training.seed, epoch))
        order = rng.permutation(len(self.examples.labels))
        size = self.training.batch_tokens
        for start in range(0, len(order), size):
            chosen = order[start : start + size]
            yield Pictures(self.examples.pictures[chosen], self.examples.labels[chosen])

    def num_batches(self, epoch):
        return -(-len(self.examples.labels) // self.training.batch_tokens)

    def validate(self, model):
        def right(logits, labels):
            return int((to_host(logits.argmax(axis=-1)) == labels).sum())

        nll, count = one_pass(model, self.validation_batches, self.workers, right)
        return {"nll": nll, "accuracy": count / self.validation_batches[0].num_tokens}

    def num_classes(self, model):
        return model.config.num_digits


def known(patch):
    """As by lines in the tables of the package, until the MonkeyPatch ``patch`` takes them back."""
    patch.setitem(KINDS, DigitsConfig.kind, "digits:Digits")
    patch.setitem(TASKS, DigitsConfig.task, "digits:TellingDigits")
