import sys

import numpy as np
import pytest

from minitransformer.cases.case import BATCH, SOURCE, TARGET, B
from minitransformer.cases.models import small_recurrent_config
from minitransformer.decoding import beam_search, greedy
from minitransformer.decoding.attention import cross_attention
from minitransformer.models.recurrent_translator import (
    RecurrentTranslator,
    RecurrentTranslatorConfig,
)

MODELS = {
    attention: RecurrentTranslator(small_recurrent_config(attention), seed=1, dtype=np.float64)
    for attention in ("additive", "none")
}
either = pytest.mark.parametrize("attention", MODELS)
LAST = np.arange(SOURCE.shape[1]) == (SOURCE > 0).sum(axis=1, keepdims=True) - 1  # (B, S)


@either
def test_what_was_said_first_and_the_last_word_of_a_source_change_all_that_follows(attention):
    model = MODELS[attention]
    expected, _ = model.forward(SOURCE, TARGET)
    said_otherwise = np.where(np.arange(TARGET.shape[1]) == 0, 10, TARGET)
    for source, target in ((SOURCE, said_otherwise), (np.where(LAST, 10, SOURCE), TARGET)):
        logits, _ = model.forward(source, target)
        assert (logits != expected).any(axis=-1).all()


def test_without_attention_one_vector_is_all_that_the_decoder_knows():
    model = MODELS["none"]
    expected, _ = model.features(SOURCE, TARGET)
    memory, _ = model.encode(SOURCE, model.source_mask(SOURCE))
    assert memory.shape == (B, model.config.d_hidden)
    y, _ = model.decode(TARGET, memory, source_mask=None)
    np.testing.assert_array_equal(y, expected)


def test_every_word_it_says_has_looked_at_the_words_of_the_source():
    weights = cross_attention(MODELS["additive"], SOURCE, TARGET)
    assert weights.shape == (1, B, 1, TARGET.shape[1], SOURCE.shape[1])
    np.testing.assert_allclose(weights.sum(axis=-1), 1)
    np.testing.assert_array_equal(
        weights[0, :, 0] > 0, np.broadcast_to(SOURCE[:, None] > 0, weights[0, :, 0].shape)
    )


def test_a_fixed_vector_has_no_attention_to_look_into():
    with pytest.raises(ValueError, match=r"attention='none' has no attention .* one vector"):
        cross_attention(MODELS["none"], SOURCE, TARGET)


@pytest.mark.parametrize("search", [greedy, beam_search])
def test_a_search_for_attention_that_there_is_not_is_refused_before_its_first_step(
    search, monkeypatch
):
    monkeypatch.setattr(sys.modules[search.__module__], "decoder_for", None)
    with pytest.raises(ValueError, match=r"attention='none' has no attention"):
        search(MODELS["none"], SOURCE, attention=True)


@either
def test_a_few_steps_down_the_gradient_make_the_loss_smaller(attention):
    model = RecurrentTranslator(small_recurrent_config(attention), seed=3, dtype=np.float64)
    losses = []
    for _ in range(10):
        model.zero_grad()
        (loss, _), cache = model.loss(BATCH)
        model.loss_backward(1.0, cache)
        model.flat.data -= 0.1 * model.flat.grad
        losses.append(loss)
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.9 * losses[0]


def test_another_attention_is_refused():
    with pytest.raises(ValueError, match="attention='dot'; choose 'additive' or 'none'"):
        RecurrentTranslatorConfig(20, 20, 8, attention="dot")
