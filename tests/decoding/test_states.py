"""States that keep what does not change against the one that works everything out anew."""

import numpy as np
import pytest
from rounding import additions_of, assert_but_for_rounding

from minitransformer import CPU
from minitransformer.core.backend import to_host
from minitransformer.data.text.vocabulary import EOS, PAD
from minitransformer.decoding import beam_search, greedy, states
from minitransformer.decoding.convolutional import ConvolutionalDecoder
from minitransformer.decoding.incremental import BLOCK
from minitransformer.decoding.recurrent import RecurrentDecoder
from minitransformer.decoding.restricted import RestrictedDecoder
from minitransformer.decoding.whole import WholeDecoder
from minitransformer.models.registry import config_class, new_model

V = 9
MAX_LENGTH = 40
SENTENCES = [[7, 4, 8, 5, EOS], [6, 6, EOS], [EOS]]
SOURCE = np.array([ids + [PAD] * (5 - len(ids)) for ids in SENTENCES])

LAYERS = dict(num_encoder_layers=2, num_decoder_layers=2)
WINDOW = dict(LAYERS, num_heads=2, d_ff=12)
# the state, its kind of model, what is special about it, and how far it is moved from its start
MODELS = [
    (RecurrentDecoder, "recurrent", dict(d_hidden=7), 0.7),
    (RecurrentDecoder, "recurrent", dict(d_hidden=7, attention="none"), 0.7),
    (ConvolutionalDecoder, "convolution", dict(LAYERS, kernel_width=1), 0.3),
    (ConvolutionalDecoder, "convolution", dict(LAYERS, kernel_width=5), 0.3),
    (RestrictedDecoder, "restricted", dict(WINDOW, window=2, norm="post"), 0.5),
    (RestrictedDecoder, "restricted", dict(WINDOW, window=1, norm="pre"), 0.3),
]
NAMES = [
    "recurrent, attention",
    "recurrent, fixed vector",
    "convolution, kernel of 1",
    "convolution, kernel of 5",
    "restricted, post-norm",
    "restricted, pre-norm",
]
every_model = pytest.mark.parametrize(("state", "kind", "fields", "moved"), MODELS, ids=NAMES)
with_positions = pytest.mark.parametrize(
    ("state", "kind", "fields", "moved"), MODELS[2:], ids=NAMES[2:]
)
both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def small_model(kind, fields, moved, seed=0, *, device=CPU, dtype=np.float32):
    """A model with a mind: its translations differ, and end at many lengths or not at all."""
    config = config_class(kind)(V, V, 6, tying="none", max_length=MAX_LENGTH, **fields)
    model = new_model(config, seed)
    model.flat.data += moved * np.random.default_rng(seed).standard_normal(model.flat.data.size)
    model.output_projection.weight.data[EOS] *= 2
    return model.to(device, dtype)


def assert_steps_as_if_worked_out_anew(state, model, reference=None):
    """Hypotheses chosen at random; sentences leave, first one and then another.

    ``reference`` is the model that works everything out anew, ``model`` by default.
    """
    decoders = [state(model, SOURCE), WholeDecoder(reference or model, SOURCE)]
    rng = np.random.default_rng(2)
    sentences, width = 3, 1
    for t, next_width in enumerate([3, 2, 4, 4, 1, 4] * 4):
        ids = model.device.asarray(rng.integers(1, V, (sentences, width)))
        ours, expected = (decoder.step(ids) for decoder in decoders)
        assert ours.dtype == model.flat.data.dtype
        assert_but_for_rounding(to_host(ours), to_host(expected), additions_of(model))
        parents = model.device.asarray(rng.integers(0, width, (sentences, next_width)))
        width = next_width
        for decoder in decoders:
            decoder.select(parents)
        if t in (4, 9):
            kept = [2, 0] if t == 4 else [1]  # then sentence 2 comes first, and then it is gone
            sentences = len(kept)
            for decoder in decoders:
                decoder.keep(model.device.asarray(kept))


@every_model
@both_types
def test_hypotheses_chosen_at_random_go_on_as_if_worked_out_anew(
    state, kind, fields, moved, dtype, device
):
    model = small_model(kind, fields, moved, device=device, dtype=dtype)
    assert_steps_as_if_worked_out_anew(state, model)


@every_model
def test_a_thousandth_too_much_in_one_weight_is_no_rounding(state, kind, fields, moved):
    """The comparison in float32 is as tight as that."""
    model, wrong = (small_model(kind, fields, moved) for _ in range(2))
    weights = [p.data for name, p in wrong.named_parameters() if name.startswith("decoder.")]
    largest = max(weights, key=lambda x: x.ndim)  # a matrix, or the kernel of a convolution
    largest.flat[abs(largest).argmax()] *= 1.001
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        assert_steps_as_if_worked_out_anew(state, wrong, model)


@pytest.mark.parametrize("kernel_width", [3, 5])
def test_so_they_do_where_convolutions_have_a_dilation(kernel_width):
    fields = dict(LAYERS, kernel_width=kernel_width)
    model = small_model("convolution", fields, 0.3, dtype=np.float64)
    for layer, dilation in zip(model.decoder, (2, 3), strict=True):
        layer.convolution.dilation = dilation
    assert_steps_as_if_worked_out_anew(ConvolutionalDecoder, model)


@every_model
@pytest.mark.parametrize("search", [greedy, beam_search])
def test_a_search_finds_what_it_finds_working_everything_out_anew(
    state, kind, fields, moved, search, monkeypatch
):
    found, expected = [], []
    for hypotheses in (found, expected):
        for seed in range(6):
            model = small_model(kind, fields, moved, seed, dtype=np.float64)
            hypotheses += np.ravel(search(model, SOURCE)).tolist()
        whole = f"{WholeDecoder.__module__}:{WholeDecoder.__name__}"
        monkeypatch.setattr(type(model), "decoding", whole)
    assert [h.ids for h in found] == [h.ids for h in expected]
    log_p = [[h.log_probability for h in hypotheses] for hypotheses in (found, expected)]
    np.testing.assert_allclose(*log_p, rtol=1e-10)
    assert len({tuple(h.ids) for h in found}) > 10  # of 18


@every_model
def test_it_is_searched_one_step_at_a_time(state, kind, fields, moved):
    assert type(states.decoder_for(small_model(kind, fields, moved), SOURCE)) is state


@with_positions
def test_no_step_goes_beyond_the_last_position(state, kind, fields, moved):
    model = small_model(kind, fields, moved)
    ids = np.full((3, 1), 4)
    for each in (state, WholeDecoder):
        decoder = each(model, SOURCE)
        for _ in range(MAX_LENGTH):
            decoder.step(ids)
        with pytest.raises(ValueError, match="sequence of 41 tokens is longer than the 40"):
            decoder.step(ids)


@pytest.mark.parametrize("window", [1, 3])
def test_of_a_window_no_more_is_kept_than_a_word_sees(window):
    model = small_model("restricted", dict(WINDOW, window=window), 0.3)
    decoder = RestrictedDecoder(model, SOURCE)
    width = 2
    decoder.step(np.full((3, 1), 4))
    decoder.select(np.zeros((3, width), dtype=int))
    for t in range(1, MAX_LENGTH):
        decoder.step(np.full((3, width), 4))
        for kept in decoder.nodes:
            assert kept.arrays[0].shape[2] == decoder.said.shape[2]
            assert kept.storage.shape[3] <= (window + 1 + BLOCK) * width
            if t > window:
                assert kept.arrays[0].shape[2] == (window + 1) * width
