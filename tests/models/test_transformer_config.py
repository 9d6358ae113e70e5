from dataclasses import replace

import pytest

from minitransformer import TransformerConfig
from minitransformer.models.transformer_config import PRESETS

CONFIG = TransformerConfig(11, 11)

PAPERS_OR_SMALLER = {
    "toy": (128, 4, 512, 2, 0.1, 0.0, "pre"),
    "tiny": (256, 4, 1024, 3, 0.1, 0.1, "pre"),
    "base": (512, 8, 2048, 6, 0.1, 0.0, "post"),  # rows of Table 3
    "big": (1024, 16, 4096, 6, 0.3, 0.0, "post"),
}


@pytest.mark.parametrize("name", PRESETS)
def test_each_preset_has_its_sizes(name):
    d_model, num_heads, d_ff, layers, dropout, inner, norm = PAPERS_OR_SMALLER[name]
    sizes = dict(d_model=d_model, num_heads=num_heads, d_ff=d_ff, norm=norm, tying="three-way")
    sizes |= dict(num_encoder_layers=layers, num_decoder_layers=layers, dropout=dropout)
    sizes |= dict(attention_dropout=inner, feed_forward_dropout=inner)
    assert TransformerConfig.preset(name, 500) == TransformerConfig(500, 500, **sizes)


def test_base_with_37000_shared_tokens_has_exactly_the_documented_number_of_parameters():
    attention = 4 * 512**2
    feed_forward = 2 * 512 * 2048 + 2048 + 512
    norm = 2 * 512
    layers = 6 * (attention + feed_forward + 2 * norm) + 6 * (
        2 * attention + feed_forward + 3 * norm
    )
    assert layers + 37_000 * 512 == 63_045_632
    assert TransformerConfig.preset("base", 37_000).num_parameters() == 63_045_632


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
