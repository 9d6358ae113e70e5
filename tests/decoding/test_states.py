"""What each kind that translates keeps from step to step of a search, against the whole model."""

import kinds
import numpy as np
import pytest
from plain_search import LIMITS, SENTENCES, SOURCE, Prefixes, plain_beam_search, plain_greedy, said
from rounding import additions_of, assert_but_for_rounding

from minitransformer import Transformer
from minitransformer.core.backend import to_host
from minitransformer.data.text.vocabulary import BOS
from minitransformer.decoding import IncrementalDecoder, beam_search, greedy, incremental
from minitransformer.decoding.convolutional import ConvolutionalDecoder
from minitransformer.decoding.incremental import BLOCK, Growing
from minitransformer.decoding.recurrent import RecurrentDecoder
from minitransformer.decoding.restricted import RestrictedDecoder
from minitransformer.decoding.states import decoder_for
from minitransformer.decoding.whole import WholeDecoder

# The state of each kind that keeps what does not change; the others work everything out anew.
KEPT = {
    "transformer": IncrementalDecoder,
    "restricted": RestrictedDecoder,
    "convolution": ConvolutionalDecoder,
    "recurrent": RecurrentDecoder,
}
MAX_LENGTH = kinds.USUAL["max_length"]
every_row = pytest.mark.parametrize("row", kinds.TRANSLATORS, ids=str)


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    kinds.known(monkeypatch)


def assert_steps_as_the_whole_model(model, reference=None):
    """Hypotheses chosen at random; sentences leave, first one and then another.

    ``reference`` is the model that is asked anew, ``model`` by default.
    """
    decoder, whole = decoder_for(model, SOURCE), Prefixes(reference or model, SOURCE)
    rng = np.random.default_rng(2)
    sentences, width = 3, 1
    for t, next_width in enumerate([3, 2, 4, 4, 1, 4] * 4):
        ids = rng.integers(1, kinds.V, (sentences, width))
        logits, expected = decoder.step(model.device.asarray(ids)), whole.step(ids)
        assert_but_for_rounding(to_host(logits), expected, additions_of(model))
        parents = rng.integers(0, width, (sentences, next_width))
        width = next_width
        decoder.select(model.device.asarray(parents))
        whole.select(parents)
        if t in (4, 9):
            kept = [2, 0] if t == 4 else [1]  # then sentence 2 comes first, and then it is gone
            sentences = len(kept)
            decoder.keep(model.device.asarray(kept))
            whole.keep(kept)


@every_row
def test_sentences_may_leave_before_the_first_step(row):
    model = row.model()
    decoder, of_one = decoder_for(model, SOURCE), decoder_for(model, SOURCE[1:2])
    decoder.keep(np.array([1]))
    ids = np.array([[BOS]])
    assert_but_for_rounding(decoder.step(ids), of_one.step(ids), additions_of(model))


@every_row
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hypotheses_chosen_at_random_go_on_as_the_whole_model_does(row, dtype, device):
    assert_steps_as_the_whole_model(row.model(device=device, dtype=dtype))


@every_row
def test_a_thousandth_too_much_in_one_weight_is_no_rounding(row):
    """The comparison in float32 is as tight as that."""
    model, wrong = (row.model(dtype=np.float32) for _ in range(2))
    of_decoder = [p.data for n, p in wrong.named_parameters() if n.startswith(("decoder", "maps"))]
    largest = max(of_decoder, key=lambda x: x.ndim)  # a matrix, or the kernel of a convolution
    largest.flat[abs(largest).argmax()] *= 1.001
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        assert_steps_as_the_whole_model(wrong, model)


@pytest.mark.parametrize("kernel_width", [3, 5])
def test_what_convolutions_see_with_a_dilation_is_kept(kernel_width):
    model = kinds.Row("convolution", dict(kernel_width=kernel_width)).model()
    for layer, dilation in zip(model.decoder, (2, 3), strict=True):
        layer.convolution.dilation = dilation
    assert_steps_as_the_whole_model(model)


@every_row
def test_a_search_asks_the_state_of_its_kind(row):
    assert type(decoder_for(row.model(), SOURCE)) is KEPT.get(row.kind, WholeDecoder)


@every_row
def test_searches_find_what_their_definitions_say(row):
    found = set()
    for seed in range(2):
        model = row.model(seed)
        for source, limit, greedily, (best, *_) in zip(
            SENTENCES, LIMITS, greedy(model, SOURCE), beam_search(model, SOURCE), strict=True
        ):
            (by_beam,) = plain_beam_search(model, source, limit)
            for hypothesis, (words, score) in (
                (greedily, plain_greedy(model, source, limit)),
                (best, by_beam),
            ):
                assert said(hypothesis) == words
                assert hypothesis.score == pytest.approx(score, rel=1e-9, abs=1e-12)
                found.add(words)
    assert len(found) > 4 or row.kind == kinds.BAG  # which repeats itself


@pytest.mark.parametrize("row", [row for row in kinds.TRANSLATORS if row.kind in KEPT], ids=str)
def test_no_step_goes_beyond_the_last_position(row):
    if row.kind == "recurrent":  # which has none
        return
    model, ids = row.model(), np.full((3, 1), 4)
    for each in (decoder_for, WholeDecoder):
        decoder = each(model, SOURCE)
        for _ in range(MAX_LENGTH):
            decoder.step(ids)
        with pytest.raises(ValueError, match="sequence of 41 tokens is longer than the 40"):
            decoder.step(ids)


# How much is kept


@pytest.mark.parametrize("window", [1, 3])
def test_of_a_window_no_more_is_kept_than_a_word_sees(window):
    model = kinds.Row("restricted", dict(window=window)).model()
    decoder = RestrictedDecoder(model, SOURCE)
    width = 2
    decoder.step(np.full((3, 1), 4))
    decoder.select(np.zeros((3, width), dtype=int))
    for t in range(1, MAX_LENGTH):
        decoder.step(np.full((3, width), 4))
        for kept in decoder.nodes:
            assert kept.arrays[0].shape[2] == decoder.said.shape[2]
            assert kept.storage[0].shape[2] <= (window + 1 + BLOCK) * width
            if t > window:
                assert kept.arrays[0].shape[2] == (window + 1) * width


def test_the_cache_moves_once_in_a_block_of_positions():
    growing = Growing()
    steps = np.random.default_rng(0).standard_normal((3 * BLOCK, 2, 3, 4, 5))  # W = 4
    storages = []
    for t, x in enumerate(steps):
        growing.append(x, -x)
        keys = np.concatenate(steps[: t + 1], axis=2)
        assert np.array_equal(growing.arrays, [keys, -keys])
        if not any(storage is growing.storage for storage in storages):
            storages.append(growing.storage)
    assert len(storages) == 3


@pytest.mark.parametrize("together", [1, 5, 10, 14])
def test_sources_encoded_some_at_a_time_are_the_same_memory(together, monkeypatch):
    model = kinds.Row("transformer").model()
    start = np.full((3, 1), BOS)
    encode, lengths = Transformer.encode, []

    def counting(model, source, mask):
        lengths.append(len(source))
        return encode(model, source, mask)

    monkeypatch.setattr(Transformer, "encode", counting)
    expected = IncrementalDecoder(model, SOURCE).step(start)
    monkeypatch.setattr(incremental, "ENCODED_TOGETHER", together)
    found = IncrementalDecoder(model, SOURCE).step(start)
    assert_but_for_rounding(found, expected, additions_of(model))
    assert lengths == ([3, 2, 1] if together >= 10 else [3, 1, 1, 1])
