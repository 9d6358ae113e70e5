import re
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from minitransformer import Transformer, TransformerConfig
from minitransformer.models.transformer_config import PRESETS

CONFIG = TransformerConfig(11, 11)


# Presets


@pytest.mark.parametrize(
    ("name", "d_model", "d_ff", "num_heads", "dropout"),
    [("base", 512, 2048, 8, 0.1), ("big", 1024, 4096, 16, 0.3)],
)
def test_base_and_big_are_the_rows_of_table_3(name, d_model, d_ff, num_heads, dropout):
    assert TransformerConfig.preset(name, 37_000) == TransformerConfig(
        source_vocabulary_size=37_000,
        target_vocabulary_size=37_000,
        d_model=d_model,
        num_heads=num_heads,
        d_ff=d_ff,
        num_encoder_layers=6,
        num_decoder_layers=6,
        dropout=dropout,
        attention_dropout=0.0,
        feed_forward_dropout=0.0,
        norm="post",
        tying="three-way",
    )


def test_base_with_37000_shared_tokens_has_exactly_the_documented_number_of_parameters(monkeypatch):
    class NothingDrawn:
        """Of 63 million random numbers only the shapes matter here."""

        def uniform(self, low, high, size):
            return np.broadcast_to(0.0, size)

        def normal(self, scale, size):
            return np.broadcast_to(0.0, size)

    monkeypatch.setattr(np.random, "default_rng", lambda seed: NothingDrawn())
    attention = 4 * 512**2
    feed_forward = 2 * 512 * 2048 + 2048 + 512
    norm = 2 * 512
    layers = 6 * (attention + feed_forward + 2 * norm) + 6 * (
        2 * attention + feed_forward + 3 * norm
    )
    assert layers + 37_000 * 512 == 63_045_632
    model = Transformer(TransformerConfig.preset("base", 37_000))
    assert model.num_parameters() == 63_045_632
    assert model.flat.data.size == 63_045_632


@pytest.mark.parametrize(
    ("name", "d_model", "d_ff", "layers", "inner_dropout"),
    [("toy", 128, 512, 2, 0.0), ("tiny", 256, 1024, 3, 0.1)],
)
def test_toy_and_tiny_are_small_pre_norm_models(name, d_model, d_ff, layers, inner_dropout):
    assert TransformerConfig.preset(name, 500) == TransformerConfig(
        source_vocabulary_size=500,
        target_vocabulary_size=500,
        d_model=d_model,
        num_heads=4,
        d_ff=d_ff,
        num_encoder_layers=layers,
        num_decoder_layers=layers,
        dropout=0.1,
        attention_dropout=inner_dropout,
        feed_forward_dropout=inner_dropout,
        norm="pre",
        tying="three-way",
    )


def test_what_the_paper_leaves_open_has_a_default():
    assert (CONFIG.max_length, CONFIG.pad_id, CONFIG.epsilon) == (512, 0, 1e-5)


@pytest.mark.parametrize("name", PRESETS)
def test_overrides_replace_single_fields_of_a_preset(name):
    plain = TransformerConfig.preset(name, 100)
    changed = TransformerConfig.preset(name, 100, d_ff=77, target_vocabulary_size=90, tying="none")
    assert changed == replace(plain, d_ff=77, target_vocabulary_size=90, tying="none")
    assert changed != plain


def test_an_unknown_preset_is_refused_with_the_ones_there_are():
    with pytest.raises(ValueError, match="preset='huge'; choose 'toy', 'tiny', 'base' or 'big'"):
        TransformerConfig.preset("huge", 100)


def test_a_misspelt_override_is_refused():
    with pytest.raises(TypeError, match="num_head"):
        TransformerConfig.preset("base", 100, num_head=4)


def test_a_config_does_not_change_after_it_was_checked():
    with pytest.raises(FrozenInstanceError):
        CONFIG.d_model = 250


# What makes no sense


SIZES = [
    "source_vocabulary_size",
    "target_vocabulary_size",
    "d_model",
    "num_heads",
    "d_ff",
    "num_encoder_layers",
    "num_decoder_layers",
    "max_length",
]


@pytest.mark.parametrize("field", SIZES)
@pytest.mark.parametrize("value", [0, -8, 8.0, "8", None, True, 2**31])
def test_a_size_that_is_no_positive_whole_number_is_refused(field, value):
    with pytest.raises(ValueError, match=re.escape(f"{field}={value!r} must be ")):
        replace(CONFIG, **{field: value})


@pytest.mark.parametrize("field", ["dropout", "attention_dropout", "feed_forward_dropout"])
@pytest.mark.parametrize("value", [-0.1, 1.0, 1, 30, float("nan")])
def test_a_dropout_outside_0_to_1_is_refused(field, value):
    with pytest.raises(ValueError, match=f"^{field}={value!r} must lie in 0 <= {field} < 1$"):
        replace(CONFIG, **{field: value})


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            dict(d_model=250, num_heads=8),
            "d_model=250 is not divisible by num_heads=8; choose 248 or 256",
        ),
        (
            dict(d_model=10, num_heads=3),
            "d_model=10 is not divisible by num_heads=3; choose 6 or 12",
        ),
        (dict(d_model=4, num_heads=8), "d_model=4 is not divisible by num_heads=8; choose 8"),
        (
            dict(d_model=9, num_heads=3),
            "d_model=9 is odd, and positions need a sine and a cosine for each pair; "
            "choose 6 or 12",
        ),
        (dict(dropout=False), "dropout=False must be a number"),
        (dict(num_encoder_layers=1001), "num_encoder_layers=1001 must be 1000 at most"),
        (dict(num_decoder_layers=10**9), "num_decoder_layers=1000000000 must be 1000 at most"),
        (dict(max_length=2**20 + 1), "max_length=1048577 must be 1048576 at most"),
        (dict(norm="Pre"), "norm='Pre'; choose 'post' or 'pre'"),
        (dict(norm=None), "norm=None; choose 'post' or 'pre'"),
        (dict(tying="all"), "tying='all'; choose 'three-way', 'two-way' or 'none'"),
        (dict(tying=True), "tying=True; choose 'three-way', 'two-way' or 'none'"),
        (
            dict(source_vocabulary_size=12),
            "three-way tying needs one vocabulary for both sides, and source_vocabulary_size=12 "
            "is not target_vocabulary_size=11; share the vocabulary or choose tying='two-way'",
        ),
        (dict(pad_id=-1), "pad_id=-1 must be >= 0"),
        (dict(pad_id=11), "pad_id=11 is no token id; choose 0 <= pad_id < 11"),
        (dict(pad_id=0.0), "pad_id=0.0 must be a whole number"),
        (
            dict(pad_id=11, source_vocabulary_size=12, tying="none"),
            "pad_id=11 is no token id; choose 0 <= pad_id < 11",
        ),
        (dict(epsilon=0), "epsilon=0 must be > 0"),
        (dict(epsilon=-1e-5), "epsilon=-1e-05 must be > 0"),
        (dict(epsilon=float("nan")), "epsilon=nan must be > 0"),
        (dict(epsilon=float("inf")), "epsilon=inf must be finite"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_with_what_to_choose(fields, words):
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        replace(CONFIG, **fields)


@pytest.mark.parametrize(
    "fields",
    [
        dict(d_model=248),
        dict(d_model=256),
        dict(d_model=2, num_heads=1),
        dict(dropout=0, attention_dropout=0.999),
        dict(tying="two-way", source_vocabulary_size=12),
        dict(tying="none", source_vocabulary_size=1, target_vocabulary_size=1),
        dict(pad_id=10),
    ],
    ids=str,
)
def test_what_is_just_within_bounds_is_accepted(fields):
    assert vars(replace(CONFIG, **fields)) == vars(CONFIG) | fields
