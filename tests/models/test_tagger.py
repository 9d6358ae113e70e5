import numpy as np

from minitransformer.cases.case import LABELS, TARGET, V
from minitransformer.cases.models import small_tagger_config
from minitransformer.models.masked_language_model import MaskedLanguageModel
from minitransformer.models.tagger import Tagger

CONFIG = small_tagger_config()
C = LABELS.max() + 1


def model_of(seed=1):
    return Tagger(CONFIG, seed, dtype=np.float64)


def test_it_has_a_row_of_logits_for_each_label_and_one_for_none():
    logits, _ = model_of().forward(TARGET)
    assert logits.shape == (*TARGET.shape, C) != (*TARGET.shape, V)


def test_of_one_seed_all_but_what_it_says_begins_as_a_masked_language_model_does():
    tagger = dict(model_of(3).named_parameters())
    head = tagger.pop("output_projection.weight")
    other = MaskedLanguageModel(CONFIG, 3, dtype=np.float64).named_parameters()
    for name, parameter in other:
        np.testing.assert_array_equal(tagger.pop(name).data, parameter.data)
    assert not tagger
    assert head.data.shape == (C, CONFIG.d_model)
