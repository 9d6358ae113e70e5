import numpy as np
import pytest

from minitransformer.cases.case import LABELS, TARGET, V
from minitransformer.cases.models import small_tagger_config
from minitransformer.models.masked_language_model import MaskedLanguageModel
from minitransformer.models.tagger import Tagger, TaggerConfig

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


def test_the_label_at_the_first_place_depends_on_the_whole_sentence():
    model = model_of()
    before, _ = model.forward([[2, 5, 6, 3]])
    for t in range(1, 4):
        ids = np.array([[2, 5, 6, 3]])
        ids[0, t] = 9
        assert (model.forward(ids)[0][0, 0] != before[0, 0]).any()


def test_labels_come_from_the_examples_and_not_from_a_recipe():
    assert not {"labels", "labels_of"} & {f.name for f in TaggerConfig.choices()}
    config = TaggerConfig.of_vocabulary(V, d_model=8, num_heads=2, labels="noun verb")
    assert (config.names, config.num_labels) == (["noun", "verb"], 3)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (dict(labels="noun noun"), "labels='noun noun' must be different names"),
        (dict(labels="noun \x1b[31m"), "in characters that are printed"),
        (dict(labels=" ".join(map(str, range(1001)))), "1001 different labels.* other way round"),
        (dict(labels=" ".join(f"{i:060}" for i in range(999))), "60,938 characters, .* shorter"),
        (dict(labels=["noun"]), r"labels=\['noun'\] must be text"),
        (dict(labels_of="texts"), "labels_of='texts'; choose 'words' or 'sentences'"),
        (dict(num_heads=3), "d_model=8 is not divisible by num_heads=3"),
    ],
)
def test_what_makes_no_sense_is_refused(field, message):
    with pytest.raises(ValueError, match=message):
        TaggerConfig(V, **{"d_model": 8, "num_heads": 2, **field})
