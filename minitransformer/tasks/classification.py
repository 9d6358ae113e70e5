"""The task of saying what a picture is of: one class of some.

Pictures stay bytes until a batch of them is asked for. Those to train on are then cut, mirrored,
scaled and coloured at random, as the settings say; of all, the mean is taken off, and they are
divided by the deviation, that of the training data in each channel.
"""

import hashlib
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from minitransformer.core.backend import array_namespace, to_host
from minitransformer.core.errors import require
from minitransformer.core.settings import at_most, not_negative, positive, share
from minitransformer.data.errors import CorpusError
from minitransformer.data.images import augmentation
from minitransformer.data.images.batches import PictureBatch, picture_batches
from minitransformer.data.images.cifar10 import load_cifar10
from minitransformer.data.images.folders import read_folder
from minitransformer.data.images.mnist import load_fashion_mnist, load_mnist
from minitransformer.data.images.npz import read_npz
from minitransformer.data.images.shapes import shapes_corpus
from minitransformer.data.images.statistics import PictureStatistics
from minitransformer.evaluation.confusion import lines_of_classes
from minitransformer.inference.classifier import OF_PICTURES
from minitransformer.layers.softmax import softmax
from minitransformer.tasks.settings import Data, share_of
from minitransformer.tasks.task import Score, Task, one_pass

LEAST = 1e-30  # probability, of which there is a logarithm
TOP = 5  # how many guesses the second score grants
HELD_OUT = 2**32 - 3  # the seed of what is held out, the same for all trainings
SMALLEST_SHARD = 32  # pictures; the statistics of fewer say little
DOWNLOADED = {
    "fashion-mnist": load_fashion_mnist,
    "mnist": load_mnist,
    "cifar-10": load_cifar10,
}


@dataclass(frozen=True)
class ClassificationData(Data):
    """Pictures with classes, and what becomes of them in a training.

    Attributes:
        corpus: ``"shapes"``, which is drawn here, ``"fashion-mnist"``, ``"mnist"``, ``"cifar-10"``,
            ``"folder"`` for a folder with a folder of PNG and JPEG for each class, or ``"npz"`` for
            arrays in a file.
        data_dir: folder with a local copy of the files; empty for a download.
        pictures: the folder, or the .npz with the arrays ``pictures``, ``labels`` and ``classes``.
        picture_size: rows and columns to which pictures of a folder are brought.
        held_out: how much of the training data validates, drawn by a seed that is always the same;
            of one's own pictures, of each class, one at least.
        train_share: how much of what is left to train on is used, drawn by the training's seed; all
            of a smaller share are in a larger one.
        crop_padding: pixels of nothing around a picture, of which a part of its size is cut out at
            random.
        mirror: whether each picture is mirrored, left to right, with probability ½.
        scale: by which share of its size a picture becomes larger at random, or smaller, at most.
        colour: standard deviation of the factors with which the principal components are added to a
            picture's colours.
    """

    corpora: ClassVar[dict] = {
        "shapes": ((), ()),
        **dict.fromkeys(DOWNLOADED, ((), ("data_dir", "held_out"))),
        "folder": (("pictures",), ("picture_size", "held_out")),
        "npz": (("pictures",), ("held_out",)),
    }
    paths: ClassVar[tuple] = ("data_dir", "pictures")

    corpus: str = "shapes"
    data_dir: str = ""
    pictures: str = ""
    picture_size: int = positive(32, at_most(512))
    held_out: float = positive(0.1, at_most(0.5))
    train_share: float = positive(1.0, at_most(1))
    crop_padding: int = not_negative(0, at_most(64))
    mirror: bool = False
    scale: float = share(0.0)
    colour: float = not_negative(0.0)


class TenCrops:
    """In place of a model: what it says of ten parts of each picture, a mean of probabilities.

    They are the four corners and the middle, and their mirror images (Krizhevsky et al. 2012,
    section 4.1), of a picture with ``padding`` pixels of nothing around it.
    """

    def __init__(self, model, padding):
        self.model = model
        self.padding = (0, 0), (padding, padding), (padding, padding), (0, 0)

    def inputs(self, batch):
        size = batch.stored.shape[1:3]
        crops = augmentation.ten_crops(np.pad(batch.stored, self.padding), size)
        return ([batch.normalized(crop) for crop in crops.swapaxes(0, 1)],)

    def logits(self, crops):
        """The logarithm of the mean, (B, E), and no cache."""
        p = sum(softmax(self.model.logits(crop)[0])[0] for crop in crops) / len(crops)
        xp = array_namespace(p)
        return xp.log(xp.maximum(p, LEAST)), None


class Classification(Task):
    """Learns what a picture is of; is validated by how many it says rightly.

    Attributes:
        classes: their names.
        counts: how often the last validation said of each class (rows) that it is each (columns).
    """

    Data = ClassificationData
    score = Score("accuracy", "accuracy", digits=4)
    command = "classify"
    tries = " PICTURE"
    unit = "picture"
    smallest_shard = SMALLEST_SHARD
    kept_files: ClassVar[dict] = OF_PICTURES
    splits: ClassVar[dict] = {"shapes": "test", **dict.fromkeys(DOWNLOADED, "test")}

    def __init__(self, recipe, kept, examples, validation, progress):
        self.data, self.training = recipe.data, recipe.training
        self.statistics = kept["statistics"]
        self.classes = self.statistics.classes
        self.examples = examples
        size = self.training.batch_tokens
        self.validation_batches = [
            PictureBatch(some.pictures, some.labels, self.statistics.normalized)
            for some in (validation[i : i + size] for i in range(0, len(validation), size))
        ]
        height, width, channels = examples.pictures.shape[1:]
        progress.say(
            f"an epoch: {len(examples):,} pictures, {height} by {width} in {channels} "
            f"channel{'s' if channels > 1 else ''}, in {self.num_batches(0):,} batches; "
            f"validation: {len(validation):,} pictures"
        )

    @staticmethod
    def read(recipe, progress):
        data = recipe.data
        data.require_sense()
        if data.corpus == "shapes":
            corpus = shapes_corpus()
            return _share(corpus["train"], recipe), corpus["validation"]
        examples, skipped = _read(data, "train")
        for line in skipped:
            progress.say(f"skipped: {line}")
        held_out = _held_out(examples, data)
        if len(examples.classes) < 2 or not len(held_out):
            raise CorpusError(
                f"there are {len(examples)} pictures of {len(examples.classes)} classes; give more "
                "of both, to train and to validate"
            )
        rest = np.setdiff1d(np.arange(len(examples)), held_out)
        return _share(examples[rest], recipe), examples[held_out]

    @staticmethod
    def read_split(recipe, split):
        data = recipe.data
        if split != Classification.splits.get(data.corpus):
            return Task.read_split(recipe, split)  # which says so
        return shapes_corpus()[split] if data.corpus == "shapes" else _read(data, split)[0]

    @staticmethod
    def fingerprint(examples):
        digest = hashlib.sha256("\n".join(examples.classes).encode())
        for array in (examples.pictures, examples.labels):
            digest.update(f"{array.shape}".encode() + array.tobytes())
        return f"{len(examples):,} pictures of SHA-256 {digest.hexdigest()}"

    @classmethod
    def keep(cls, recipe, examples, validation):
        return {"statistics": PictureStatistics.of(examples)}

    @classmethod
    def of_data(cls, recipe, examples, validation, kept):
        height, width, channels = examples.pictures.shape[1:]
        num_classes = len(examples.classes)
        return dict(height=height, width=width, channels=channels, num_classes=num_classes)

    def batches(self, epoch):
        size, seed = self.training.batch_tokens, (self.training.seed, epoch)
        return picture_batches(self.examples, size, self._prepared, seed)

    def num_batches(self, epoch):
        return -(-len(self.examples) // self.training.batch_tokens)

    def _prepared(self, pictures, rng):
        """Bytes (B, Y, X, C), changed at random as the settings say, as a model takes them."""
        data = self.data
        if data.scale:
            most = 1 + data.scale
            pictures = augmentation.scale(pictures, most, rng)
        if data.crop_padding:
            pictures = augmentation.random_crop(pictures, data.crop_padding, rng)
        if data.mirror:
            pictures = augmentation.mirror(pictures, rng)
        if data.colour:
            components = self.statistics.components
            pictures = augmentation.colour(pictures, components, data.colour, rng)
        return self.statistics.normalized(pictures)

    def validate(self, model, ten_crops=False):
        """Top-1 and, of more classes than TOP, top-5 accuracy, and the NLL.

        Args:
            ten_crops: whether to ask for ten parts of each picture, as TenCrops does.
        """
        if ten_crops:
            padding = self.data.crop_padding
            require(padding, "ten crops are for a training with crop_padding, and this had none")
            model = TenCrops(model, padding)
        nll, counts = one_pass(model, self.validation_batches, self.workers, self._said)
        self.counts = counts[:, :-1]
        total = int(self.counts.sum())
        scores = {"nll": nll, "accuracy": int(self.counts.trace()) / total}
        if len(self.classes) > TOP:
            scores["top_5"] = int(counts[:, -1].sum()) / total
        return scores

    def details(self):
        return lines_of_classes(self.classes, self.counts)

    def num_classes(self, model):
        return model.config.num_classes

    def _said(self, logits, labels):
        """How often each class (rows) was said to be each one, and was among the TOP likeliest."""
        logits, num_classes = to_host(logits), len(self.classes)
        rows = np.arange(len(labels))
        own, places = logits[rows, labels][:, None], np.arange(num_classes)
        before = (logits > own) | ((logits == own) & (places < labels[:, None]))  # as argmax has it
        counts = np.zeros((num_classes, num_classes + 1), int)
        np.add.at(counts, (labels, logits.argmax(axis=-1)), 1)
        np.add.at(counts[:, -1], labels[before.sum(axis=-1) < TOP], 1)
        return counts


def _held_out(examples, data):
    """The places of the examples that validate, in order."""
    order = np.random.default_rng(HELD_OUT).permutation(len(examples))
    groups = [order]
    if data.corpus not in DOWNLOADED:  # of few pictures, chance may take none of a class, or all
        groups = [order[examples.labels[order] == i] for i in range(len(examples.classes))]
    counts = [max(1, round(data.held_out * len(group))) for group in groups]
    taken = [group[:n] for group, n in zip(groups, counts, strict=True) if n < len(group)]
    return np.sort(np.concatenate([order[:0], *taken]))


def _share(examples, recipe):
    share, seed = recipe.data.train_share, recipe.training.seed
    return examples if share == 1 else examples[share_of(examples, share, seed)]


def _read(data, split):
    """(Pictures, lines about what was skipped) of a corpus of files; all there is, or a split."""
    if data.corpus == "folder":
        return read_folder(data.pictures, 2 * (data.picture_size,))
    if data.corpus == "npz":
        return read_npz(data.pictures), []
    return DOWNLOADED[data.corpus](split, data.data_dir or None), []
