"""The numbers in a page: as they were trained, or each next to its own in 8 bits."""

import numpy as np
import pytest
from in_node import ask, corpus, names_of, runs, same_bits, small_model
from in_numpy import Watched
from test_equal_to_numpy import differences

from minitransformer.data.text.vocabulary import Vocabulary
from minitransformer.explorer import page as pages
from minitransformer.explorer import stored
from minitransformer.explorer.page import explorer_page, operations, require_explorable
from minitransformer.models.language_model_config import LanguageModelConfig
from minitransformer.models.registry import new_model
from minitransformer.models.transformer_config import TransformerConfig
from minitransformer.runs.checkpoint.file import CheckpointError


@pytest.fixture
def rounding(monkeypatch):
    """Every model is too large for float32."""
    monkeypatch.setattr(stored, "LARGEST_FLOAT32", 0)


@pytest.mark.parametrize(
    "numbers",
    [
        np.linspace(-1, 1, 200),
        np.array([1.0] + [0.004] * 63 + [0.004] * 64),  # a large one is of its own block alone
        np.full((3, 5), 1e-38),
        np.full(130, 3e38),
        np.random.default_rng(0).normal(size=(7, 33)),
    ],
    ids=["even", "one large", "tiny", "huge", "normal"],
)
def test_no_number_is_off_by_more_than_half_of_its_scale(numbers):
    scales, whole = stored.in_8_bits(numbers)
    assert (scales.dtype, whole.dtype) == (np.float32, np.int8)
    assert whole.shape == (-(-numbers.size // stored.BLOCK), stored.BLOCK)
    back = (scales.astype(np.float64)[:, np.newaxis] * whole).reshape(-1)
    kept, filled = np.split(back, [numbers.size])
    flat = numbers.reshape(-1).astype(np.float32)
    allowed = np.repeat(scales.astype(np.float64) / 2, stored.BLOCK)[: numbers.size]
    assert (np.abs(kept - flat) <= allowed * (1 + 1e-6)).all()
    assert not filled.any()
    largest = np.abs(np.pad(flat, (0, filled.size)).reshape(whole.shape)).max(axis=1)
    assert (scales.astype(np.float64) * 127 >= largest).all()
    normal = largest > 1e-36  # below that a bfloat16 has fewer digits
    assert (scales[normal] * 127 <= largest[normal].astype(np.float64) * (1 + 2**-7)).all()


def test_an_array_of_zeros_stays_one():
    scales, whole = stored.in_8_bits(np.zeros((2, 40)))
    assert not scales.any()
    assert not whole.any()


@pytest.mark.parametrize("kind", ["transformer", "language-model"])
def test_a_page_in_8_bits_has_the_numbers_of_the_rounded_model_to_the_last_bit(
    kind, vocabulary, rounding
):
    model = small_model(vocabulary, kind).to(dtype=np.float32)
    rounded = stored.as_stored(model, 8)
    answer = ask(explorer_page(model, vocabulary), parameters=names_of(model))
    assert same_bits(answer["parameters"], rounded)
    assert not np.array_equal(rounded.flat.data, model.flat.data)
    assert stored.as_stored(model, 32) is model


def test_such_a_page_computes_what_the_rounded_model_does(model, vocabulary, rounding, monkeypatch):
    asked = runs(vocabulary, 3)
    answer = ask(explorer_page(model, vocabulary), runs=asked)
    rounded = stored.as_stored(model, 8)
    for found, request in zip(answer["runs"], asked, strict=True):
        assert differences(found, Watched(monkeypatch, rounded, request)) == []
        assert differences(found, Watched(monkeypatch, model, request)) != []


def test_an_earlier_epoch_is_the_model_of_then_rounded(model, vocabulary):
    epochs = {}
    for number in (11, 2):
        epochs[number] = small_model(vocabulary, norm="pre")
        epochs[number].flat.data[:] *= number
    answer = ask(explorer_page(model, vocabulary, epochs=epochs), parameters=names_of(model))
    assert [epoch for epoch, _ in answer["epochs"]] == [2, 11]
    for epoch, found in answer["epochs"]:
        assert same_bits(found, stored.as_stored(epochs[epoch], 8))
    assert same_bits(answer["parameters"], model)  # which 12 MB have in float32


def test_a_model_too_large_for_float32_is_rounded():
    sizes = dict(d_model=8, num_heads=2, d_ff=8, num_encoder_layers=1, num_decoder_layers=1)
    largest = stored.LARGEST_FLOAT32 * 3 // 16  # of parameters
    small, large = (
        TransformerConfig.of_vocabulary(largest // 8 + more, **sizes) for more in (-200, 200)
    )
    assert small.num_parameters() < largest < large.num_parameters()
    assert (stored.bits_of(small), stored.bits_of(large)) == (32, 8)


def test_a_translator_of_multi30k_fits_and_the_paper_s_does_not():
    """With the sizes of ``multi30k-cpu`` and of the base model."""
    fits = TransformerConfig.of_vocabulary(
        8000, d_model=256, d_ff=1024, num_heads=4, num_encoder_layers=3, num_decoder_layers=3
    )
    require_explorable(fits)
    assert stored.stored_size(fits, 8) < 12_000_000
    with pytest.raises(CheckpointError, match="40,000,000 are the most"):
        require_explorable(TransformerConfig.preset("base", 8000))
    require_explorable(fits, num_epochs=2)
    with pytest.raises(CheckpointError, match="and with 3 epochs, has 4"):
        require_explorable(fits, num_epochs=3)


def test_earlier_epochs_have_8_bits_also_beside_a_model_in_float32():
    config = LanguageModelConfig(8000, 64, num_heads=2, d_ff=64)
    assert stored.bits_of(config) == 32
    require_explorable(config, num_epochs=30_000_000 // stored.stored_size(config, 8))


def test_layers_that_would_compute_for_minutes_are_refused():
    deep = LanguageModelConfig(60, 8, num_heads=2, d_ff=8, num_layers=1000)
    with pytest.raises(CheckpointError, match="explore a model of fewer layers"):
        require_explorable(deep)
    sizes = dict(d_model=8, num_heads=2, d_ff=8, num_encoder_layers=60, num_decoder_layers=60)
    config = TransformerConfig.of_vocabulary(60, **sizes)
    require_explorable(config)
    assert operations(config) > pages.AT_ONCE


def test_the_size_that_is_said_beforehand_is_that_of_the_numbers(vocabulary):
    model = new_model(TransformerConfig.preset("toy", 1000))
    for bits in (32, 8):
        size = len(stored.numbers_in_page(model, bits))
        assert size == pytest.approx(stored.stored_size(model.config, bits), rel=2e-3)


def test_the_page_of_the_toy_recipe_has_less_than_six_million_bytes_and_fits_with_its_epochs():
    model = new_model(TransformerConfig.preset("toy", 1000))
    vocabulary = Vocabulary.train([text for pair in corpus()["train"] for text in pair], 1000)
    assert len(explorer_page(model, vocabulary)) < 6_000_000
    page = explorer_page(model, vocabulary, epochs=dict.fromkeys(range(1, 13), model))
    assert len(page) < 6_000_000 + 12 * 1_500_000 < pages.LARGEST
