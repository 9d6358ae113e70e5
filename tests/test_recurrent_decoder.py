"""The decoder over a GRU's state against the one that works everything out anew."""

import numpy as np
import pytest

from minitransformer import CPU
from minitransformer.backend import to_host
from minitransformer.data.vocabulary import EOS, PAD
from minitransformer.decoding import beam_search, greedy, states
from minitransformer.decoding.recurrent import RecurrentDecoder
from minitransformer.decoding.whole import WholeDecoder
from minitransformer.models.recurrent_translator import (
    RecurrentTranslator,
    RecurrentTranslatorConfig,
)

V = 9
SENTENCES = [[7, 4, 8, 5, EOS], [6, 6, EOS], [EOS]]
SOURCE = np.array([ids + [PAD] * (5 - len(ids)) for ids in SENTENCES])

either = pytest.mark.parametrize("attention", ["additive", "none"])


def small_model(attention, seed=0, *, device=CPU, dtype=np.float32):
    """A model with a mind: its translations differ, and end at many lengths or not at all."""
    options = dict(d_hidden=7, attention=attention, tying="none", max_length=40)
    model = RecurrentTranslator(RecurrentTranslatorConfig(V, V, 6, **options), seed)
    model.flat.data += 0.7 * np.random.default_rng(seed).standard_normal(model.flat.data.size)
    model.output_projection.weight.data[EOS] *= 2
    return model.to(device, dtype)


@either
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-5), (np.float64, 1e-12)])
def test_hypotheses_chosen_at_random_go_on_as_if_worked_out_anew(
    attention, dtype, tolerance, device
):
    model = small_model(attention, device=device, dtype=dtype)
    decoders = [kind(model, SOURCE) for kind in (RecurrentDecoder, WholeDecoder)]
    rng = np.random.default_rng(2)
    sentences, width = 3, 1
    for t, next_width in enumerate([3, 2, 4, 4, 1, 4]):
        ids = device.asarray(rng.integers(1, V, (sentences, width)))
        ours, expected = (decoder.step(ids) for decoder in decoders)
        assert ours.dtype == dtype
        np.testing.assert_allclose(to_host(ours), to_host(expected), rtol=0, atol=tolerance)
        parents = device.asarray(rng.integers(0, width, (sentences, next_width)))
        width = next_width
        for decoder in decoders:
            decoder.select(parents)
        if t in (2, 4):
            kept = [2, 0] if t == 2 else [1]  # then sentence 2 comes first, and then it is gone
            sentences = len(kept)
            for decoder in decoders:
                decoder.keep(device.asarray(kept))


@either
@pytest.mark.parametrize("search", [greedy, beam_search])
def test_a_search_finds_what_it_finds_working_everything_out_anew(attention, search, monkeypatch):
    found, expected = [], []
    for hypotheses in (found, expected):
        for seed in range(6):
            model = small_model(attention, seed, dtype=np.float64)
            hypotheses += np.ravel(search(model, SOURCE)).tolist()
        monkeypatch.delitem(states.STATES, "recurrent", raising=False)
    assert [h.ids for h in found] == [h.ids for h in expected]
    log_p = [[h.log_probability for h in hypotheses] for hypotheses in (found, expected)]
    np.testing.assert_allclose(*log_p, rtol=1e-10)
    assert len({tuple(h.ids) for h in found}) > 10  # of 18


@either
def test_it_is_searched_one_step_at_a_time(attention):
    assert type(states.decoder_for(small_model(attention), SOURCE)) is RecurrentDecoder
