import numpy as np

from minitransformer.cases.case import LABELS
from minitransformer.cases.models import small_tagger_config
from minitransformer.models.masked_language_model import MaskedLanguageModel
from minitransformer.models.tagger import Tagger

CONFIG = small_tagger_config()
C = LABELS.max() + 1  # one for each label, and one for none


def test_of_one_seed_all_but_what_it_says_begins_as_a_masked_language_model_does():
    tagger = dict(Tagger(CONFIG, 3, dtype=np.float64).named_parameters())
    head = tagger.pop("output_projection.weight")
    other = MaskedLanguageModel(CONFIG, 3, dtype=np.float64).named_parameters()
    for name, parameter in other:
        np.testing.assert_array_equal(tagger.pop(name).data, parameter.data)
    assert not tagger
    assert head.data.shape == (C, CONFIG.d_model)
