from dataclasses import replace

import numpy as np
import pytest

from minitransformer.layers.convolution_2d import Convolution2d
from minitransformer.layers.linear import Linear
from minitransformer.models.alexnet import AlexNet, AlexNetConfig

CONFIG = AlexNetConfig(28, 28, 3, 10, width_factor=1 / 32)


def layers_of(model, kind):
    return [layer for _, layer in model.named_modules() if isinstance(layer, kind)]


@pytest.mark.parametrize(("left_out", "convolutions", "maps"), [
    ("none", [0, 1, 0, 1, 1], [1, 1, 0]),
    ("third", [0, 1, 1, 1], [1, 1, 0]),
    ("fourth", [0, 1, 0, 1], [1, 1, 0]),
    ("hidden", [0, 1, 0, 1, 1], [1, 0]),
])  # fmt: skip
def test_biases_begin_with_1_where_the_paper_has_it(left_out, convolutions, maps):
    model = AlexNet(replace(CONFIG, left_out=left_out))
    of = [
        [set(layer.bias.data.tolist()) for layer in layers_of(model, kind)]
        for kind in (Convolution2d, Linear)
    ]
    assert of == [[{bias} for bias in biases] for biases in (convolutions, maps)]


def test_biases_begin_with_0_where_they_are_not_lifted():
    model = AlexNet(replace(CONFIG, lifted=False))
    layers = [layer for kind in (Convolution2d, Linear) for layer in layers_of(model, kind)]
    assert not any(layer.bias.data.any() for layer in layers)


def test_weights_begin_with_a_deviation_of_a_hundredth_or_as_the_configuration_says():
    *_, hidden, head = (layer.weight.data for layer in layers_of(AlexNet(CONFIG), Linear))
    assert [hidden.std(), head.std()] == pytest.approx([0.01, 0.01], rel=0.1)
    hidden = layers_of(AlexNet(replace(CONFIG, start="he")), Linear)[1].weight.data
    assert hidden.std() == pytest.approx(np.sqrt(2 / len(hidden)), rel=0.1)


def test_only_the_large_form_is_told_of_the_small_one():
    for form, advice in (("small", "or more$"), ("large", "or more, or form='small'$")):
        with pytest.raises(ValueError, match=advice):
            replace(CONFIG, form=form, width=14)


def test_a_tower_sees_nothing_of_the_other_between_the_second_convolution_and_the_third():
    model = AlexNet(replace(CONFIG, width_factor=1 / 16, response_norm=False, start="he"))
    x = np.random.default_rng(0).standard_normal((1, 13, 13, 6)).astype(np.float32)
    second = model.convolutions[1]
    before, _ = second.forward(x)
    x[..., :3] += 1
    after, _ = second.forward(x)
    half = before.shape[-1] // 2
    np.testing.assert_array_equal(after[..., half:], before[..., half:])
    assert (after[..., :half] != before[..., :half]).any()


@pytest.mark.parametrize("width_factor", [1 / 16, 1])
def test_one_tower_has_the_channels_of_two_and_more_weights(width_factor):
    one, two = (replace(CONFIG, width_factor=width_factor, towers=towers) for towers in (1, 2))
    channels = [width_factor * count for count in (96, 256, 384, 384, 256)]  # the paper's
    for config in (one, two):
        assert [sizes.c_out for sizes in config.convolutions()] == channels
    assert one.num_parameters() > two.num_parameters()


@pytest.mark.parametrize("change", [
    dict(activation="tanh"), dict(overlapping=False), dict(response_norm=False), dict(towers=1),
], ids=str)  # fmt: skip
def test_each_part_that_can_be_taken_away_changes_what_the_network_says(change):
    x = np.random.default_rng(0).standard_normal((1, *CONFIG.shape))
    config = replace(CONFIG, start="he")
    expected, _ = AlexNet(config).logits(x)
    found, _ = AlexNet(replace(config, **change)).logits(x)
    assert abs(found - expected).max() > 1e-3
