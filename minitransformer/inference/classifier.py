"""Pictures in, classes out: a trained classifier at work, and what in a picture it went by."""

import numpy as np

from minitransformer.core.backend import CPU, to_host
from minitransformer.core.twins import standing_in
from minitransformer.core.workers import Workers, available_cores
from minitransformer.data.images.statistics import PictureStatistics
from minitransformer.inference.trained import Trained, require_numbers
from minitransformer.layers.softmax import softmax
from minitransformer.runs.attachments import KeptFile
from minitransformer.runs.checkpoint.fields import require_fields
from minitransformer.runs.checkpoint.file import CheckpointError, load_checkpoint, save_checkpoint

ARRAYS = "mean", "deviation", "components"
COPIES, NOISE = 16, 0.1  # of a picture whose gradients are averaged; its deviation, of all contrast


def save_statistics(path, statistics):
    """Write PictureStatistics to a file, all of them or nothing."""
    arrays = {name: getattr(statistics, name) for name in ARRAYS}
    save_checkpoint(path, arrays, {"classes": list(statistics.classes)})


def load_statistics(path):
    """The PictureStatistics in a file.

    Raises:
        CheckpointError: the file holds none.
        OSError: it does not exist or may not be opened.
    """
    arrays, state = load_checkpoint(path)
    classes = require_fields(path, state, classes=list)["classes"]
    try:
        mean, deviation, components = (arrays[name] for name in ARRAYS)
        *_, channels = mean.shape
        shapes = mean.ndim, deviation.shape, components.shape
        if shapes != (3, (channels,), (channels, channels)):
            raise ValueError(f"its arrays are of the shapes {mean.shape}, {shapes[1]}, {shapes[2]}")
        if not all(np.isfinite(arrays[name]).all() for name in ARRAYS) or deviation.min() <= 0:
            raise ValueError("its numbers must be finite, and deviations above 0")
        if not all(isinstance(name, str) for name in classes):
            raise ValueError("names of classes must be text")
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    return PictureStatistics(tuple(classes), mean, deviation, components)


# What every run keeps that is trained on pictures.
OF_PICTURES = {"statistics": KeptFile("statistics.npz", save_statistics, load_statistics)}


class Classifier(Trained):
    """Says what pictures are of.

    Args:
        model: a PictureClassifier.
        statistics: the PictureStatistics of what it was trained on.
        origin: what its parameters are, in words.
    """

    task = "classification"
    kept_files = OF_PICTURES

    def __init__(self, model, statistics, origin=""):
        super().__init__(model, origin)
        self.statistics = statistics
        self.workers = Workers(available_cores() if model.device == CPU else 1)

    @classmethod
    def read_kept(cls, run, config):
        statistics = run.load_kept("statistics")
        here = (*statistics.mean.shape, len(statistics.classes))
        if here != (*config.shape, config.num_classes):
            raise CheckpointError(
                f"{run.attached['statistics']} is for pictures of another shape, or for other "
                f"classes, than the model of {run.config}; take both from one run"
            )
        return (statistics,)

    def probabilities(self, pictures):
        """Those of all classes for each picture, (B, num_classes), on the host.

        Args:
            pictures: (B, Y, X, C) of the model's size, uint8.

        Raises:
            FloatingPointError: the model gives NaN.
        """
        x = self.statistics.normalized(pictures)

        def of_part(part):
            return softmax(require_numbers(to_host(self.model.logits(x[part])[0])))[0]

        parts = [part for part in self.workers.ranges(len(x)) if part.start < part.stop]
        with self.model.device.as_current(), self.workers.one_blas_thread():
            return np.concatenate(self.workers.map(of_part, parts))

    def classify(self, pictures, top=5):
        """The ``top`` likeliest classes of each picture, the likeliest first.

        Args:
            pictures: as for :meth:`probabilities`.

        Returns:
            for each picture a list of tuples (class, probability).
        """
        return [
            [(self.statistics.classes[i], float(p[i])) for i in np.argsort(-p, kind="stable")[:top]]
            for p in self.probabilities(pictures)
        ]

    def looked_at(self, picture):
        """What of a picture matters to what the model says of it, (Y, X), each 0 or more.

        Of a model with attention, how much of each patch comes to the class token: through all
        layers, half of what a position is made of being itself, by the residual connection (Abnar
        and Zuidema 2020). Of any other, how fast the logit of the likeliest class changes with a
        pixel, in the channel where it does so most (Simonyan et al. 2014). As that changes from
        pixel to pixel, it is a mean over copies with noise on them (Smilkov et al. 2017).

        Args:
            picture: (Y, X, C), uint8.
        """
        # Attention is read from the package's functions, whatever runs in their place.
        with self.model.device.as_current(), standing_in(None):
            x = self.statistics.normalized(picture[None])  # (1, Y, X, C)
            logits, cache = self.model.logits(x)
            if hasattr(self.model, "attention"):
                return self._of_patches(to_host(self.model.attention(cache))[:, 0], picture)
            noise = np.random.default_rng(0).standard_normal((COPIES, *picture.shape), x.dtype)
            copies, cache = self.model.logits(x + NOISE * np.ptp(x) * noise)  # (16, classes)
            dlogits = (logits == logits.max()).astype(logits.dtype).repeat(len(copies), axis=0)
            gradient = to_host(self.model.backward(dlogits, cache)).mean(axis=0)  # (Y, X, C)
            self.model.zero_grad()  # those of the parameters came along with it
        return np.abs(gradient).max(axis=-1)

    def _of_patches(self, weights, picture):
        """From weights (layers, H, 1 + N, 1 + N), the class token first, to pixels (Y, X)."""
        flow = np.eye(weights.shape[-1])
        for layer in weights.mean(axis=1):
            flow = (layer + np.eye(len(layer))) / 2 @ flow
        height, width = picture.shape[:2]
        size = self.model.config.patch_size
        patches = flow[0, 1:].reshape(height // size, width // size)
        return patches.repeat(size, axis=0).repeat(size, axis=1)
