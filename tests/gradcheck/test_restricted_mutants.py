"""Wrong backwards of a restricted Transformer, which are those of its windows: all are rejected."""

from dataclasses import replace

import numpy as np
import pytest
from battery.table import slipped

from minitransformer.cases.case import LABELS, SOURCE, TARGET
from minitransformer.cases.models import ModelLoss, small_restricted_config
from minitransformer.gradcheck import check_module
from minitransformer.gradcheck.report import WRONG
from minitransformer.layers import restricted_attention
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.models.restricted_transformer import RestrictedTransformer

OF_MEMORY = "source_embedding encoder"
OF_DECODER = f"{OF_MEMORY} target_embedding decoder"


def wrong_parts():
    """The parts of the model with a gradient that the checker says is wrong.

    Attention has no dropout here, so that the cache of another forward can stand in.
    """
    config = replace(small_restricted_config(), attention_dropout=0.0, tying="none")
    model = ModelLoss(RestrictedTransformer(config, seed=1))
    report = check_module(model, SOURCE, TARGET, LABELS, directions=1)
    return {tensor.name.split(".")[1] for tensor in report.tensors if not tensor.right}


SLIPS = {
    "what a block sends to the keys of the one before is dropped": {
        "dk, dv = (windows": "dk[:, :size] = 0; dk, dv = (windows"
    },
    "gradients of keys and values are one block too far": {
        "windows_cache) for": "(windows_cache[0], 0, windows_cache[2])) for"
    },
}


@pytest.mark.parametrize("slip", SLIPS)
def test_gradients_that_are_not_gathered_from_blocks_are_rejected(slip, monkeypatch):
    right = restricted_attention.restricted_attention_backward
    monkeypatch.setattr(restricted_attention, right.__name__, slipped(right, SLIPS[slip]))
    assert wrong_parts() == set(OF_DECODER.split())


OTHERWISE = {
    "the window is wider by one": (dict(window=2), OF_DECODER),
    "the decoder looks ahead": (dict(causal=False), OF_DECODER),
    "padding is looked at": (dict(mask=None), OF_MEMORY),
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_the_backward_of_another_forward_is_rejected(name, monkeypatch):
    changed, wrong = OTHERWISE[name]
    right = restricted_attention.restricted_attention

    def forward(*arguments):
        *inputs, window, causal, mask, _, _ = arguments
        y, _ = right(*arguments)
        _, cache = right(*inputs, **dict(window=window, causal=causal, mask=mask) | changed)
        return y, cache

    monkeypatch.setattr(restricted_attention, right.__name__, forward)
    assert wrong_parts() == set(wrong.split())


def test_the_right_one_is_accepted():
    assert wrong_parts() == set()


@pytest.mark.parametrize("slip", [lambda dy: 2 * dy, lambda dy: dy + 0.1 * np.abs(dy)])
def test_what_is_wrong_with_a_model_is_told_after_40_calls_of_forward_a_gradient(slip, monkeypatch):
    """Two are the check's; a refined slope would take 20, and each trial of a cause takes three."""
    calls = []

    class Counted(ModelLoss):
        def forward(self, *ids_and_labels):
            calls.append(1)
            return super().forward(*ids_and_labels)

    right = LayerNorm.backward
    monkeypatch.setattr(LayerNorm, "backward", lambda self, dy, cache: right(self, slip(dy), cache))
    model = Counted(RestrictedTransformer(small_restricted_config(), seed=1))
    report = check_module(model, SOURCE, TARGET, LABELS, directions=1)
    assert report.verdict == WRONG
    assert len(calls) < 40 * len(report.tensors)
