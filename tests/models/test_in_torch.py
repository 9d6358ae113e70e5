"""Models of pictures with any choices beside PyTorch's modules: loss and all gradients.

They are in training, so that batch norms take the statistics of the batch, and nothing is dropped.
One of each kind is among the cases, too, with stored results.
"""

from functools import partial
from itertools import product

import pytest
from parity_cases import Kept, differences, ours

from minitransformer.cases.case import B, Case, D, F, H
from minitransformer.cases.models import whole
from minitransformer.cases.pictures import CLASSES, SIZES
from minitransformer.core.twins import standing_in
from minitransformer.models.alexnet import AlexNetConfig
from minitransformer.models.residual_network import ResidualNetworkConfig
from minitransformer.models.small_network import SmallNetworkConfig
from minitransformer.models.vision_transformer import VisionTransformerConfig

NARROW = dict(width_factor=1 / 8)
AT_LEAST = dict(height=15, width=16)  # which AlexNet's small form takes, and ...
LARGE = dict(height=67, width=71, form="large")  # its large form
COMBINED = product(("A", "B", "C", "none"), ("basic", "bottleneck"), (False, True))
CONFIGS = [
    *(
        ResidualNetworkConfig(
            **SIZES | NARROW,
            depth=8 if block == "basic" else 11,
            shortcut=shortcut,
            block=block,
            pre_activation=pre_activation,
        )
        for shortcut, block, pre_activation in COMBINED
    ),
    ResidualNetworkConfig(**SIZES | dict(height=9, width=7), width_factor=0.2, depth=14),
    *(
        ResidualNetworkConfig(
            **SIZES | dict(height=33, width=32, form="large", width_factor=1 / 32),
            depth=depth,
            block=block,
            shortcut="B",
            pre_activation=depth == 34,
        )
        for depth, block in ((18, "basic"), (34, "basic"), (50, "bottleneck"))
    ),
    *(
        AlexNetConfig(**SIZES | AT_LEAST | dict(width_factor=1 / 32) | choices)
        for choices in (
            {},
            dict(activation="tanh"),
            dict(overlapping=False),
            dict(response_norm=False),
            dict(towers=1),
            dict(left_out="third"),
            dict(left_out="fourth"),
            dict(left_out="hidden"),
            LARGE,
        )
    ),
    SmallNetworkConfig(**SIZES | dict(height=17, width=9), num_features=4),
    SmallNetworkConfig(**SIZES | dict(height=8), num_features=4, normalisation="layer-norm"),
    *(
        VisionTransformerConfig(**SIZES, d_model=D, num_heads=H, d_ff=F, num_layers=2, **choices)
        for choices in (dict(norm="post"), dict(patch_size=2))
    ),
]


def name_of(config):
    chosen = (f"{name}={value}" for name, value in vars(config).items() if name not in SIZES)
    return " ".join((config.kind, *chosen))


@pytest.mark.parametrize("config", CONFIGS, ids=name_of)
def test_a_model_with_any_choices_has_the_loss_and_the_gradients_of_torch(config, monkeypatch):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    import torch_twin

    case = Case(name_of(config), whole(config, (B, *config.shape), CLASSES))
    theirs = getattr(torch_twin, config.kind.replace("-", "_"))
    monkeypatch.setitem(torch_twin.IN_TORCH, case.name, partial(theirs, config=config))
    with standing_in(Kept):
        errors = differences(ours(case), torch_twin.results(case))
    assert max(errors.values()) < 1e-9, errors
