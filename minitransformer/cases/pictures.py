"""Whole models of pictures, with the training loss as their output.

Their ReLUs are kept away from the kink by what is added before them, the shift of a batch norm or
a bias: in each channel it is such that 0 lies in the middle of a gap between the values there. Of
values as many as these, gaps are far wider than the step of a central difference. Where another
entry becomes the largest of a window of pooling is a kink, too; of these there are few nearby, and
the checker takes shorter steps there.
"""

from inspect import unwrap

import numpy as np

from minitransformer.cases.case import B, Case, D, F, H
from minitransformer.cases.models import ModelLoss, whole
from minitransformer.core.twins import Twin, standing_in
from minitransformer.layers.batch_norm import BatchNorm
from minitransformer.layers.relu import relu
from minitransformer.models.alexnet import AlexNetConfig
from minitransformer.models.residual_network import ResidualNetworkConfig
from minitransformer.models.small_network import SmallNetworkConfig
from minitransformer.models.vision_transformer import VisionTransformerConfig

SIZES = dict(height=8, width=8, channels=2, num_classes=5)
CLASSES = np.array([4, 0, 2])  # (B,)
SMALL_NETWORK = SmallNetworkConfig(**SIZES, num_features=3)
ALEXNET = AlexNetConfig(**SIZES | dict(height=15, width=15, channels=1), width_factor=2**-8)
VISION_TRANSFORMER = VisionTransformerConfig(
    **SIZES, d_model=D, num_heads=H, d_ff=F, num_layers=2, dropout=0.2, attention_dropout=0.2
)


def small_residual_config(**choices):
    return ResidualNetworkConfig(**SIZES, **dict(depth=8, width_factor=1 / 8) | choices)


class PictureLoss(ModelLoss):
    """The training loss of a model of pictures, whose ReLUs follow a norm, or a map with a bias."""

    def away_from_kinks(self, pictures, labels):
        """Change what goes into each ReLU, one after the other in a single forward."""
        before_relus = BeforeReLUs()
        for _, layer in self.model.named_modules():
            if isinstance(layer, BatchNorm):  # ReLUs tell gains of one sign from those of both
                layer.gamma.data = layer.gamma.data * (-1) ** np.arange(len(layer.gamma.data))
            if isinstance(layer, BatchNorm) or getattr(layer, "bias", None):
                layer.forward = before_relus.noted(layer)
        with standing_in(before_relus):
            self.forward(pictures, labels)
        for _, layer in self.model.named_modules():
            vars(layer).pop("forward", None)


class BeforeReLUs:
    """Stands in for ReLUs: before each it changes the layer that was called last."""

    def noted(self, layer):
        """The forward of a layer, which is known then to have been called last."""
        forward = layer.forward

        def noting(*inputs):
            self.last = layer
            return forward(*inputs)

        return noting

    def twin_of(self, function):
        return Twin(self.relu) if function is relu else None

    def relu(self, x):
        if isinstance(self.last, BatchNorm):
            added = self.last.beta
        else:  # brought to a deviation of 1, as by a norm
            scale, added = 1 / x.std(), self.last.bias
            for parameter in (self.last.weight, added):
                parameter.data = scale * parameter.data
            x = scale * x
        columns = x.reshape(-1, x.shape[-1]).T  # (E, N)
        shift = np.array([_to_a_gap(column, i % 2) for i, column in enumerate(columns)])  # (E,)
        added.data = added.data + shift
        return unwrap(relu)(x + shift)


def _to_a_gap(values, mostly_on):
    """What brings the middle of the widest gap between values to 0, on one side of their median.

    A quarter of them or more is on the other side of it. Behind a ReLU many are alike.
    """
    values = np.unique(values)
    gaps = np.diff(values)
    quarter, half = -(-len(gaps) // 4), len(gaps) // 2
    start, stop = (quarter, half) if mostly_on else (half, len(gaps) - quarter)
    below = start + gaps[start : max(stop, start + 1)].argmax()
    return -(values[below] + values[below + 1]) / 2


def _case(name, config, of=PictureLoss, tolerance=1e-7):
    loss = whole(config, (B, *config.shape), CLASSES, of=of)
    return Case(f"model, {name}", loss, 3, tolerance)


PICTURES = [
    _case("small network", SMALL_NETWORK),
    _case("alexnet", ALEXNET),
    *(
        _case(f"residual network, {name}", small_residual_config(**choices))
        for name, choices in {
            "plain": dict(shortcut="none"),
            "shortcuts A": dict(shortcut="A"),
            "shortcuts B, bottlenecks": dict(shortcut="B", block="bottleneck", depth=11),
            "shortcuts C, pre-activation": dict(shortcut="C", pre_activation=True),
        }.items()
    ),
    _case("vision transformer", VISION_TRANSFORMER, ModelLoss, 1e-6),
]
