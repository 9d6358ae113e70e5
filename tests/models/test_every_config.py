"""What no configuration takes, and what it says to choose: a row in one table for all kinds."""

import re
from dataclasses import FrozenInstanceError, fields, replace
from typing import get_type_hints

import pytest

from minitransformer.models.registry import KINDS, config_class
from minitransformer.models.tagger import TaggerConfig

CONFIGS = {kind: config_class(kind).of_vocabulary(11) for kind in KINDS}
STACKS = ["transformer", "restricted", "language-model", "masked-language-model", "tagger"]
ALL = list(KINDS)
TRANSLATORS = [kind for kind, config in CONFIGS.items() if config.task == "translation"]


def of_type(config, kind):
    types = get_type_hints(type(config))
    return [f.name for f in fields(config) if types[f.name] is kind and f.name != "pad_id"]


COUNTS = [(kind, name) for kind, config in CONFIGS.items() for name in of_type(config, int)]
RATES = [(kind, name) for kind, config in CONFIGS.items() for name in of_type(config, float)]
RATES = [(kind, name) for kind, name in RATES if name.endswith("dropout")]


@pytest.mark.parametrize("kind", KINDS)
def test_it_does_not_change_after_it_was_checked(kind):
    with pytest.raises(FrozenInstanceError):
        CONFIGS[kind].d_model = 250


@pytest.mark.parametrize(("kind", "name"), COUNTS)
def test_a_size_that_is_no_positive_whole_number_is_refused(kind, name):
    for value in (0, -8, 8.0, "8", None, True, 2**31):
        with pytest.raises(ValueError, match=re.escape(f"{name}={value!r} must be ")):
            replace(CONFIGS[kind], **{name: value})


@pytest.mark.parametrize(("kind", "name"), RATES)
def test_a_dropout_outside_0_to_1_is_refused(kind, name):
    for value in (-0.1, 1.0, 1, 30, float("nan")):
        with pytest.raises(ValueError, match=f"^{name}={value!r} must lie in 0 <= {name} < 1$"):
            replace(CONFIGS[kind], **{name: value})
    with pytest.raises(ValueError, match=f"^{name}=False must be a number$"):
        replace(CONFIGS[kind], **{name: False})


def shortly(given):
    return str(given)[:40]


# The kinds, the fields, and what is said of them
REFUSED = [
    *((STACKS, fields, words) for fields, words in (
        (dict(d_model=250, num_heads=8),
         "d_model=250 is not divisible by num_heads=8; choose 248 or 256"),
        (dict(d_model=4, num_heads=8), "d_model=4 is not divisible by num_heads=8; choose 8"),
        (dict(norm="Pre"), "norm='Pre'; choose 'post' or 'pre'"),
        (dict(norm=None), "norm=None; choose 'post' or 'pre'"),
        *((dict(epsilon=e), f"epsilon={e!r} must be > 0") for e in (0, -1e-5, float("nan"))),
        (dict(epsilon=float("inf")), "epsilon=inf must be finite"),
    )),
    (STACKS[:2], dict(d_model=10, num_heads=3),  # with positions that need an even width
     "d_model=10 is not divisible by num_heads=3; choose 6 or 12"),
    (STACKS[:2], dict(d_model=9, num_heads=3),
     "d_model=9 is odd, and positions need a sine and a cosine for each pair; choose 6 or 12"),
    (STACKS[2:], dict(d_model=10, num_heads=3),
     "d_model=10 is not divisible by num_heads=3; choose 9 or 12"),
    (ALL, dict(max_length=2**20 + 1), "max_length=1048577 must be 1048576 at most"),
    (ALL, dict(pad_id=11), "pad_id=11 is no token id; choose 0 <= pad_id < 11"),
    (ALL, dict(pad_id=-1), "pad_id=-1 must be >= 0"),
    (ALL, dict(pad_id=0.0), "pad_id=0.0 must be a whole number"),
    *((["transformer", "restricted", "convolution"], {f"num_{side}_layers": count},
       f"num_{side}_layers={count} must be 1000 at most")
      for side in ("encoder", "decoder") for count in (1001, 10**9)),
    (STACKS[2:], dict(num_layers=1001), "num_layers=1001 must be 1000 at most"),
    *((TRANSLATORS, dict(tying=tying),
       f"tying={tying!r}; choose 'three-way', 'two-way' or 'none'") for tying in ("all", True)),
    (TRANSLATORS, dict(source_vocabulary_size=12),
     "three-way tying needs one vocabulary for both sides, and source_vocabulary_size=12 "
     "is not target_vocabulary_size=11; share the vocabulary or choose tying='two-way'"),
    (TRANSLATORS, dict(pad_id=11, source_vocabulary_size=12, tying="none"),
     "pad_id=11 is no token id; choose 0 <= pad_id < 11"),
    (["recurrent"], dict(attention="dot"), "attention='dot'; choose 'additive' or 'none'"),
    *((["convolution"], dict(kernel_width=width),
       f"kernel_width={width} has no middle; choose {words}")
      for width, words in ((4, "3 or 5"), (2, "1 or 3"))),
    *((["tagger"], fields, words) for fields, words in (
        (dict(labels="noun noun"), "labels='noun noun' must be different names"),
        (dict(labels="noun \x1b[31m"), "in characters that are printed"),
        (dict(labels=" ".join(map(str, range(1001)))), "are 1001 different labels, such as"),
        (dict(labels=" ".join(f"{i:060}" for i in range(999))), "have 60,938 characters, such as"),
        (dict(labels=["noun"]), "labels=['noun'] must be text"),
        (dict(labels_of="texts"), "labels_of='texts'; choose 'words' or 'sentences'"),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("kinds", "fields", "words"), REFUSED, ids=shortly)
def test_what_makes_no_sense_is_refused_with_what_to_choose(kinds, fields, words):
    for kind in kinds:
        with pytest.raises(ValueError, match=re.escape(words)):
            replace(CONFIGS[kind], **fields)


@pytest.mark.parametrize(("kinds", "fields"), [
    (STACKS, dict(d_model=248, num_heads=8)),
    (STACKS, dict(d_model=2, num_heads=1)),
    (STACKS[2:], dict(d_model=9, num_heads=3)),
    (STACKS, dict(dropout=0, attention_dropout=0.999)),
    (TRANSLATORS, dict(tying="two-way", source_vocabulary_size=12)),
    (TRANSLATORS, dict(tying="none", source_vocabulary_size=1, target_vocabulary_size=1)),
    (ALL, dict(pad_id=10, max_length=2**20)),
    (["convolution"], dict(kernel_width=1, num_encoder_layers=1000)),
    (["tagger"], dict(labels=" ".join(map(str, range(1000))), labels_of="sentences")),
], ids=shortly)  # fmt: skip
def test_what_is_just_within_bounds_is_accepted(kinds, fields):
    for kind in kinds:
        config = CONFIGS[kind]
        assert vars(replace(config, **fields)) == vars(config) | fields


def test_labels_come_from_the_examples_and_not_from_a_recipe():
    assert not {"labels", "labels_of"} & {f.name for f in TaggerConfig.choices()}
    config = TaggerConfig.of_vocabulary(11, d_model=8, num_heads=2, labels="noun verb")
    assert (config.names, config.num_labels) == (["noun", "verb"], 3)
