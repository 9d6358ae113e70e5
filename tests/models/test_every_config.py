"""What no configuration takes, and what it says to choose: a row in one table for all kinds."""

import re
from dataclasses import FrozenInstanceError, fields, replace
from typing import get_type_hints

import pytest

from minitransformer.models.picture_classifier import PictureConfig
from minitransformer.models.registry import KINDS, config_class
from minitransformer.models.tagger import TaggerConfig
from minitransformer.models.token_config import TokenConfig


def config_of_few(kind):
    """Of few words or of small pictures, with choices as they are by default."""
    of_kind = config_class(kind)
    if issubclass(of_kind, PictureConfig):
        return of_kind(height=28, width=32, channels=1, num_classes=10)
    return of_kind.of_vocabulary(11)


CONFIGS = {kind: config_of_few(kind) for kind in KINDS}
STACKS = ["transformer", "restricted", "language-model", "masked-language-model", "tagger"]
STACKS += ["vision-transformer"]
MAY_BE_0 = "pad_id", "num_groups", "window", "lora"  # of which "restricted" has one that may not
LANGUAGE_MODELS = STACKS[2:5]
OF_TOKENS = [kind for kind, config in CONFIGS.items() if isinstance(config, TokenConfig)]
TRANSLATORS = [kind for kind, config in CONFIGS.items() if config.task == "translation"]


def of_type(config, kind):
    types = get_type_hints(type(config))
    return [f.name for f in fields(config) if types[f.name] is kind and f.name not in MAY_BE_0]


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
    (OF_TOKENS, dict(max_length=2**20 + 1), "max_length=1048577 must be 1048576 at most"),
    (OF_TOKENS, dict(pad_id=11), "pad_id=11 is no token id; choose 0 <= pad_id < 11"),
    (TRANSLATORS, dict(pad_id=-1), "pad_id=-1 must be >= 0"),
    (LANGUAGE_MODELS, dict(pad_id=-2), "pad_id=-2 must be >= -1"),
    (OF_TOKENS, dict(pad_id=0.0), "pad_id=0.0 must be a whole number"),
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
    *((LANGUAGE_MODELS, fields, words) for fields, words in (
        (dict(num_groups=3), "num_heads=4 is not divisible by num_groups=3; choose one of 1, 2, 4"),
        (dict(num_groups=8), "num_heads=4 is not divisible by num_groups=8; choose one of 1, 2, 4"),
        (dict(num_groups=-1), "num_groups=-1 must be >= 0"),
        (dict(window=-1), "window=-1 must be >= 0"),
        (dict(window=1.0), "window=1.0 must be a whole number"),
        (dict(d_model=12, positions="rotary"), "makes heads 3 wide, and rotary positions turn "
         "features in pairs; choose an even width of heads"),
        (dict(d_model=9, num_heads=3, positions="sinusoidal"), "d_model=9 is odd, and sinusoidal "
         "positions need a sine and a cosine for each pair"),
        (dict(positions="rope"), "positions='rope'; choose 'learned', 'sinusoidal', 'rotary', "),
        (dict(rotary_pairs="half"), "rotary_pairs='half'; choose 'neighbours' or 'halves'"),
        (dict(rotary_base=0.0), "rotary_base=0.0 must be > 0"),
        (dict(activation="GELU"), "activation='GELU'; choose 'relu', 'gelu', 'gelu-by-tanh', "),
        (dict(normalisation="rms"), "normalisation='rms'; choose 'layer-norm' or 'rms-norm'"),
        (dict(bias=True), "bias=True; choose 'feed-forward', 'all' or 'none'"),
        (dict(tying="three-way"), "tying='three-way'; choose 'two-way' or 'none'"),
        (dict(scaled_embedding=1), "scaled_embedding=1 must be True or False"),
    )),
    (["restricted"], dict(window=0), "window=0 must be > 0"),
    (["recurrent"], dict(attention="dot"), "attention='dot'; choose 'additive' or 'none'"),
    *((["convolution"], dict(kernel_width=width),
       f"kernel_width={width} has no middle; choose {words}")
      for width, words in ((4, "3 or 5"), (2, "1 or 3"))),
    *((["tagger"], fields, words) for fields, words in (
        (dict(labels="noun noun"), "labels='noun noun' must be different names"),
        (dict(labels="noun \x1b[31m"), "in characters that are printed"),
        (dict(labels=" ".join(map(str, range(1001)))), "are 1001 different labels, such as"),
        (dict(labels="a" * 50_001), "have 50,001 characters, such as 'aaaa"),
        (dict(labels=["noun"]), "labels=['noun'] must be text"),
        (dict(labels_of="texts"), "labels_of='texts'; choose 'words' or 'sentences'"),
    )),
    (["small-network"], dict(height=7),
     "pictures of 7 × 32 are too small to be halved three times; choose some of 8 × 8 or more"),
    (["alexnet"], dict(width=14), "pictures of 28 × 14 are too small for form='small': "
     "pooling leaves nothing of them; choose some of 15 × 15 or more"),
    (["alexnet"], dict(width=7, overlapping=False), "choose some of 8 × 8 or more"),
    (["alexnet"], dict(form="large"), "too small for form='large': pooling leaves nothing of them; "
     "choose some of 67 × 67 or more, or form='small'"),
    (["small-network"], dict(normalisation="group-norm"),
     "normalisation='group-norm'; choose 'batch-norm' or 'layer-norm'"),
    (["alexnet"], dict(left_out="fifth"), "choose 'none', 'third', 'fourth' or 'hidden'"),
    (["alexnet"], dict(activation="gelu"), "activation='gelu'; choose 'relu' or 'tanh'"),
    (["alexnet"], dict(start="ones"), "start='ones'; choose 'he', 'glorot', 'fixed-"),
    (["alexnet"], dict(overlapping=1), "overlapping=1 must be True or False"),
    (["alexnet", "residual-network"], dict(form="huge"), "form='huge'; choose 'small' or 'large'"),
    *((["alexnet", "residual-network"], dict(width_factor=factor), f"width_factor={factor!r} must")
      for factor in (0, -1.0, 101, float("nan"), float("inf"))),
    *((["residual-network"], fields, f"depth={fields['depth']} is none of the form {words}")
      for fields, words in (
          (dict(depth=21), "'small' with the block 'basic'; choose 20 or 26"),
          (dict(depth=2), "'small' with the block 'basic'; choose 8"),
          (dict(depth=1), "'small' with the block 'basic'; choose 8"),
          (dict(depth=21, block="bottleneck"),
           "'small' with the block 'bottleneck'; choose 20 or 29"),
          (dict(depth=20, form="large"), "'large' with the block 'basic'; choose 18 or 34"),
          (dict(depth=34, form="large", block="bottleneck"),
           "'large' with the block 'bottleneck'; choose 50, 101 or 152"))),
    (["residual-network"], dict(depth=1208), "depth=1208 must be 1202 at most"),
    (["residual-network"], dict(depth=1202, block="bottleneck"), "'bottleneck'; choose 1199"),
    (["residual-network"], dict(block="wide"), "block='wide'; choose 'basic' or 'bottleneck'"),
    (["residual-network"], dict(shortcut="D"), "shortcut='D'; choose 'A', 'B', 'C' or 'none'"),
    (["vision-transformer"], dict(patch_size=7), "pictures of 28 × 32 cannot be cut into patches "
     "of patch_size=7; choose one of 1, 2, 4"),
    (["vision-transformer"], dict(height=2**31 - 1, width=2**31 - 1, patch_size=7),
     "of patch_size=7; choose one of 1"),
    (["vision-transformer"], dict(height=30, width=42, patch_size=4), "choose one of 1, 2, 3, 6"),
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
    (OF_TOKENS, dict(pad_id=10, max_length=2**20)),
    (LANGUAGE_MODELS, dict(pad_id=-1)),
    (["convolution"], dict(kernel_width=1, num_encoder_layers=1000)),
    (["tagger"], dict(labels=" ".join(map(str, range(1000))), labels_of="sentences")),
    (["tagger"], dict(labels="a" * 50_000)),
    (["small-network"], dict(height=8, width=8)),
    (["alexnet"], dict(height=15, width=15, width_factor=1e-9)),
    (["alexnet"], dict(height=8, width=8, overlapping=False)),
    (["alexnet"], dict(height=67, width=67, form="large")),
    (["residual-network"], dict(height=1, width=1, depth=998)),
    (["residual-network"], dict(depth=1202)),
    (["residual-network"], dict(depth=1001, block="bottleneck")),
    (["residual-network"], dict(depth=152, form="large", block="bottleneck")),
    (["vision-transformer"], dict(height=5, width=35, patch_size=5)),
    (["vision-transformer"], dict(height=2**30, width=2**30, patch_size=2**29)),
], ids=shortly)  # fmt: skip
def test_what_is_just_within_bounds_is_accepted(kinds, fields):
    for kind in kinds:
        config = CONFIGS[kind]
        assert vars(replace(config, **fields)) == vars(config) | fields


def test_labels_come_from_the_examples_and_not_from_a_recipe():
    assert not {"labels", "labels_of"} & {f.name for f in TaggerConfig.choices()}
    config = TaggerConfig.of_vocabulary(11, d_model=8, num_heads=2, labels="noun verb")
    assert (config.names, config.num_labels) == (["noun", "verb"], 3)
