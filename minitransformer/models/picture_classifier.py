"""What all models share that tell what a picture is of: logits of classes, and the loss of a label.

    logits = f(pictures)        loss = cross-entropy of the labels

``B`` batch, ``Y`` rows, ``X`` columns, ``C`` channels.
"""

from dataclasses import dataclass
from typing import ClassVar

from minitransformer.core.backend import like
from minitransformer.core.errors import InputError, require
from minitransformer.loss.cross_entropy import NO_PADDING, cross_entropy, cross_entropy_backward
from minitransformer.models.config import ModelConfig
from minitransformer.models.model import Model

FORMS = "small", "large"  # of networks whose first layers differ with the size of the pictures
WIDEST = 100  # times the paper's channels: more is no model that anybody trains


@dataclass(frozen=True)
class PictureConfig(ModelConfig):
    """What every model of pictures has; the data say it.

    Attributes:
        height, width: rows and columns of a picture, Y and X.
        channels: C, 1 of grey and 3 of colours.
        num_classes: how many things a picture may be of.
    """

    task: ClassVar[str] = "classification"
    of_data: ClassVar[tuple] = ("height", "width", "channels", "num_classes")
    own_head: ClassVar[tuple] = ("head.",)

    height: int
    width: int
    channels: int
    num_classes: int

    @property
    def shape(self):
        """(Y, X, C)."""
        return self.height, self.width, self.channels


class PictureClassifier(Model):
    """A Model of pictures (B, Y, X, C). A subclass says what it makes of them:

        features(pictures, rng) -> y, cache     what ``head``, a linear map, is given
        features_backward(dy, cache) -> dpictures

    Pictures are normalised: their mean was taken off, and they were divided by their deviation.
    """

    def inputs(self, batch):
        return (batch.pictures,)

    def logits(self, pictures, rng=None):
        """Logits (B, num_classes), and the cache for :meth:`backward`.

        Args:
            pictures: (B, Y, X, C), on the host or on the model's device.
            rng: generator on the model's device in a training, for dropout and for layers that
                norm by the batch; or None at inference.

        Raises:
            ValueError: pictures of another size than the model's.
        """
        own = self.flat.data
        x = like(pictures, own).astype(own.dtype, copy=False)  # float64 pictures would spread
        self._check_size(x)
        y, features_cache = self.features(x, rng)
        logits, head_cache = self.head.forward(y)  # (B, num_classes)
        return logits, (features_cache, head_cache)

    def backward(self, dlogits, cache):
        """Add the gradient of every parameter; returns that of the pictures, (B, Y, X, C)."""
        features_cache, head_cache = cache
        dy = self.head.backward(dlogits, head_cache)
        return self.features_backward(dy, features_cache)

    def loss(self, batch, rng=None, *, smoothing=0.0, kappa=0.0, num_tokens=None):
        """As of every Model, of ``batch.pictures`` and ``batch.labels``, (B,).

        Consistency of two passes is of models of text, and ``kappa`` 0 here.
        """
        logits, cache = self.logits(*self.inputs(batch), rng)
        losses, loss_cache = cross_entropy(logits, batch.labels, smoothing, NO_PADDING, num_tokens)
        return losses, (cache, loss_cache)

    def loss_backward(self, dloss, cache):
        cache, loss_cache = cache
        self.backward(cross_entropy_backward(dloss, loss_cache), cache)

    def check(self, batch):
        self._check_size(batch.pictures)
        labels, count = batch.labels, self.config.num_classes
        no_class = labels[~((labels >= 0) & (labels < count))]
        if len(no_class):
            raise InputError(
                f"the label {no_class[0]} is no class of the model, 0 <= label < {count}; "
                "is it for other data?"
            )

    def _check_size(self, pictures):
        require(
            pictures.shape[1:] == self.config.shape,
            f"pictures of shape {pictures.shape} are not of the model's size: it takes "
            "(batch, {} rows, {} columns, {} channels)".format(*self.config.shape),
        )
