from dataclasses import replace

import numpy as np
import pytest

from minitransformer.layers.convolution_2d import Convolution2d
from minitransformer.models.residual_blocks import Block
from minitransformer.models.residual_network import ResidualNetwork, ResidualNetworkConfig

CIFAR = ResidualNetworkConfig(32, 32, 3, 10)
C = 4  # channels


def block_of(c_out=C, stride=1, **choices):
    """A block in float64."""
    config = replace(CIFAR, **choices)
    return Block(config, C, C, c_out, stride, np.random.default_rng(0)).to(dtype=np.float64)


def drawn(seed=1):
    return np.random.default_rng(seed).standard_normal((2, 6, 5, C))


@pytest.mark.parametrize(("depth", "millions"), [
    (20, 0.27), (32, 0.46), (44, 0.66), (56, 0.85), (110, 1.7),
])  # fmt: skip
def test_small_ones_have_as_many_parameters_as_in_table_6(depth, millions):
    count = replace(CIFAR, depth=depth).num_parameters() / 1e6
    assert count == pytest.approx(millions, abs=0.006 if depth < 110 else 0.06)


@pytest.mark.parametrize("choices", [
    dict(depth=8), dict(depth=26, shortcut="C"), dict(depth=29, block="bottleneck"),
    dict(depth=18, form="large"), dict(depth=34, form="large", pre_activation=True),
    *(dict(depth=depth, form="large", block="bottleneck") for depth in (50, 101, 152)),
], ids=str)  # fmt: skip
def test_its_depth_is_the_number_of_layers_with_weights_but_for_shortcuts(choices):
    model = ResidualNetwork(replace(CIFAR, width_factor=1 / 64, **choices))
    assert model.num_parameters() == model.config.num_parameters()
    convolutions = [
        path
        for path, layer in model.named_modules()
        if isinstance(layer, Convolution2d) and "shortcut" not in path
    ]
    assert len(convolutions) + 1 == choices["depth"]


def test_shortcuts_a_and_a_plain_network_have_the_same_weights_b_more_and_c_the_most():
    none, a, b, c = (replace(CIFAR, shortcut=s).num_parameters() for s in ("none", "A", "B", "C"))
    assert none == a < b < c


@pytest.mark.parametrize("pre_activation", [False, True])
def test_a_block_whose_f_is_nothing_passes_on_what_it_is_given_and_its_gradient(pre_activation):
    block = block_of(pre_activation=pre_activation)
    for parameter in block.steps[-1].parameters():
        parameter.data[:] = 0
    x, dy = drawn() if pre_activation else np.abs(drawn()), drawn(2)
    y, cache = block.forward(x, np.random.default_rng(0))
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(block.backward(dy, cache), dy)


def test_in_a_plain_network_nothing_goes_past_a_block():
    block = block_of(shortcut="none")
    block.steps[-1].norm.gamma.data[:] = 0
    y, _ = block.forward(drawn(), np.random.default_rng(0))
    assert not y.any()


@pytest.mark.parametrize("shortcut", ["A", "B", "C", "none"])
@pytest.mark.parametrize("block", ["basic", "bottleneck"])
def test_a_block_with_a_stride_takes_every_second_row_and_column(shortcut, block):
    x = drawn()  # (2, 6, 5, C)
    y, _ = block_of(2 * C, 2, shortcut=shortcut, block=block).forward(x)
    assert y.shape == (2, 3, 3, 2 * C)


def test_weights_of_convolutions_begin_with_the_deviation_of_he():
    model = ResidualNetwork(replace(CIFAR, depth=14))
    for _, layer in model.named_modules():
        if isinstance(layer, Convolution2d):
            k, _, c, _ = layer.weight.data.shape
            assert layer.weight.data.std() == pytest.approx(np.sqrt(2 / (k * k * c)), rel=0.15)
            assert layer.bias is None
