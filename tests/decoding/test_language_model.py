"""A language model over its cache against the one that reads everything anew.

Whatever its blocks are, it is tried in tests/models/test_language_model_choices.py, too.
"""

import numpy as np
import pytest
from rounding import additions_of, assert_but_for_rounding

from minitransformer.core.backend import to_host
from minitransformer.data.text.vocabulary import PAD
from minitransformer.decoding.language_model import LanguageModelDecoder
from minitransformer.decoding.states import text_decoder_for
from minitransformer.models.language_model import LanguageModel
from minitransformer.models.language_model_config import LanguageModelConfig

V, LONGEST = 9, 6


def small_model(longest=LONGEST, **options):
    config = LanguageModelConfig(V, 6, num_heads=2, d_ff=7, num_layers=2, max_length=longest)
    return LanguageModel(config, seed=3, **options)


def anew(model, seen):
    logits, _ = model.forward(np.array([seen]))
    return to_host(logits)[0, -1]


def test_each_step_gives_what_reading_everything_anew_gives_on_each_device(device):
    model = small_model(device=device)
    decoder, rng = LanguageModelDecoder(model), np.random.default_rng(0)
    for count in (2, 1, 1, 1):
        logits = decoder.step(rng.integers(1, V, count).tolist())
        assert_but_for_rounding(to_host(logits), anew(model, decoder.seen), additions_of(model))
    assert len(decoder.seen) == 5


def test_nobody_looks_at_padding_in_the_middle():
    model = small_model(dtype=np.float64)
    decoder = LanguageModelDecoder(model)
    logits = decoder.step([5, PAD, 7])
    assert_but_for_rounding(logits, anew(model, [5, PAD, 7]), additions_of(model))
    assert_but_for_rounding(decoder.step([4]), anew(model, [5, PAD, 7, 4]), additions_of(model))


@pytest.mark.parametrize(("longest", "expected"), [
    (6, [1, 2, 3, 4, 5, 6, 4, 5, 6, 4, 5, 6, 4]),
    (5, [1, 2, 3, 4, 5, 3, 4, 5, 3, 4, 5, 3, 4]),
    (2, [1, *[2] * 12]),
    (1, [1] * 13),
])  # fmt: skip
def test_when_the_context_is_full_the_newer_half_is_read_once_more(longest, expected):
    model = small_model(longest=longest, dtype=np.float64)
    decoder, said, lengths = LanguageModelDecoder(model), [], []
    for token in np.random.default_rng(1).integers(1, V, len(expected)).tolist():
        said.append(token)
        logits = decoder.step([token])
        lengths.append(len(decoder.seen))
        assert decoder.seen == said[-lengths[-1] :]
        assert_but_for_rounding(logits, anew(model, decoder.seen), additions_of(model))
    assert lengths == expected


def test_of_a_long_beginning_the_end_is_seen():
    model = small_model(dtype=np.float64)
    decoder, said = LanguageModelDecoder(model), [4, 5, 6, 7, 8, 4, 5, 7]
    logits = decoder.step(said)
    assert decoder.seen == said[-LONGEST:]
    assert_but_for_rounding(logits, anew(model, said[-LONGEST:]), additions_of(model))


class Doubling(LanguageModel):
    def features(self, ids, rng=None):
        y, cache = super().features(ids, rng)
        return 2 * y, cache


def test_a_language_model_of_another_class_is_not_stepped_as_one_of_these():
    model = Doubling(small_model().config, seed=3, dtype=np.float64)
    decoder = text_decoder_for(model)
    for token in (4, 5, 6):
        logits = decoder.step([token])
        assert_but_for_rounding(logits, anew(model, decoder.seen), additions_of(model))
    assert type(text_decoder_for(small_model())) is LanguageModelDecoder
