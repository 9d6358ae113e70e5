import sys

import numpy as np
import pytest

from minitransformer.cases.case import SOURCE, TARGET, B
from minitransformer.cases.models import small_recurrent_config
from minitransformer.decoding import beam_search, greedy
from minitransformer.models.recurrent_translator import RecurrentTranslator

MODELS = {
    attention: RecurrentTranslator(small_recurrent_config(attention), seed=1, dtype=np.float64)
    for attention in ("additive", "none")
}


def test_without_attention_one_vector_is_all_that_the_decoder_knows():
    model = MODELS["none"]
    expected, _ = model.features(SOURCE, TARGET)
    memory, _ = model.encode(SOURCE, model.source_mask(SOURCE))
    assert memory.shape == (B, model.config.d_hidden)
    y, _ = model.decode(TARGET, memory, source_mask=None)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("search", [greedy, beam_search])
def test_a_search_for_attention_that_there_is_not_is_refused_before_its_first_step(
    search, monkeypatch
):
    monkeypatch.setattr(sys.modules[search.__module__], "decoder_for", None)
    with pytest.raises(ValueError, match=r"attention='none' has no attention .* one vector"):
        search(MODELS["none"], SOURCE, attention=True)
