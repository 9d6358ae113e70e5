"""Wrong backwards of a convolutional translator, each one slip of the pen: all are rejected.

A mutant says which method is written otherwise, {was: is}, and the gradients of which parts of the
model are wrong then.
"""

from dataclasses import replace

import pytest
from battery.table import slipped

from minitransformer.cases.case import LABELS, SOURCE, TARGET
from minitransformer.cases.models import ModelLoss, small_convolution_config
from minitransformer.gradcheck import check_module
from minitransformer.models.convolutional_translator import (
    ConvolutionalTranslator,
    GatedConvolution,
)

OF_WORDS = "source_embedding source_positions"
OF_MEMORY = f"{OF_WORDS} encoder"
OF_SAID = "target_embedding target_positions"
OF_DECODER = f"{OF_MEMORY} {OF_SAID} decoder attention"  # all but what stands behind it

MUTANTS = {
    "the words of the source are no values": (
        ConvolutionalTranslator.encode_backward,
        {"dx + de, self": "dx, self"},
        OF_WORDS,
    ),
    "what the encoder made of them is no value": (
        ConvolutionalTranslator.encode_backward,
        {"dx = dkeys + de": "dx = dkeys"},
        OF_MEMORY,
    ),
    "no √½ of the values": (
        ConvolutionalTranslator.encode_backward,
        {"de = dvalues * ROOT_HALF": "de = dvalues"},
        OF_MEMORY,
    ),
    "no √½ of the encoder's layers": (
        ConvolutionalTranslator.encode_backward,
        {"dx = dx * ROOT_HALF": "pass"},
        OF_MEMORY,
    ),
    "nothing goes past a layer of the encoder": (
        ConvolutionalTranslator.encode_backward,
        {"dx = dx + layer": "dx = layer"},
        OF_MEMORY,
    ),
    "the caches of the encoder's layers are taken in forward's order": (
        ConvolutionalTranslator.encode_backward,
        {"reversed(caches)": "caches"},
        OF_MEMORY,
    ),
    "gradients of keys and values exchanged": (
        ConvolutionalTranslator.decode_backward,
        {"return dkeys, dvalues": "return dvalues, dkeys"},
        OF_MEMORY,
    ),
    "of the keys, only what the first layer asked": (
        ConvolutionalTranslator.decode_backward,
        {"dkeys + dk,": "dk,"},
        OF_MEMORY,
    ),
    "the word just said is no query": (
        ConvolutionalTranslator.decode_backward,
        {"dg + dquery,": "dg,"},
        OF_SAID,
    ),
    "a layer of the decoder makes no query": (
        ConvolutionalTranslator.decode_backward,
        {"dc + dquery": "dc"},
        OF_DECODER,
    ),
    "a layer of the decoder makes nothing but a query": (
        ConvolutionalTranslator.decode_backward,
        {"dc + dquery": "dquery"},
        OF_DECODER,
    ),
    "the last linear map is passed over": (
        ConvolutionalTranslator.decode_backward,
        {"self.last.backward(dy, last_cache)": "dy"},
        f"{OF_DECODER} last",
    ),
    "no √½ of what is found in the source": (
        ConvolutionalTranslator.decode_backward,
        {"dc = dx * ROOT_HALF": "dc = dx"},
        OF_DECODER,
    ),
    "the gradients of a layer's attention go to another's weights": (
        ConvolutionalTranslator.decode_backward,
        {"zip(self.decoder, self.attention,": "zip(self.decoder, self.attention[::-1],"},
        "attention",
    ),
    "dropout before the convolution is passed over": (
        GatedConvolution.backward,
        {"return dropout_backward(dx, dropout_cache)": "return dx"},
        OF_DECODER,
    ),
}


def wrong_parts():
    """The parts of the model with a gradient that the checker says is wrong."""
    config = replace(small_convolution_config(), tying="none")
    model = ModelLoss(ConvolutionalTranslator(config, seed=1))
    report = check_module(model, SOURCE, TARGET, LABELS, directions=1)
    return {tensor.name.split(".")[1] for tensor in report.tensors if not tensor.right}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_backward_of_a_convolutional_translator_is_rejected(name, monkeypatch):
    right, slip, wrong = MUTANTS[name]
    owner = GatedConvolution if "Gated" in right.__qualname__ else ConvolutionalTranslator
    monkeypatch.setattr(owner, right.__name__, slipped(right, slip))
    assert wrong_parts() == set(wrong.split())


def test_the_right_one_is_accepted():
    assert wrong_parts() == set()
