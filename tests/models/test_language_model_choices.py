"""Whatever a language model chooses, the rest of it holds: each two choices are met together.

Among some thirty models each choice of one field stands beside each choice of every other.
"""

from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
from kinds import Recorder, slope_and_gradient
from parity_cases import Kept, differences, ours
from rounding import additions_of, assert_but_for_rounding

from minitransformer.cases.case import LABELS, TARGET, B, Case, F, T, V
from minitransformer.cases.models import whole
from minitransformer.core.twins import accelerated, standing_in
from minitransformer.data.text.batches import LabelledBatch
from minitransformer.decoding.language_model import LanguageModelDecoder
from minitransformer.models.language_model import LanguageModel
from minitransformer.models.language_model_config import PRESETS, LanguageModelConfig

SIZES = dict(
    vocabulary_size=V, d_model=16, num_heads=4, d_ff=F, num_layers=2, max_length=9, dropout=0.0
)
POSITIONS = [dict(positions=name) for name in ("learned", "sinusoidal", "rotary", "alibi", "none")]
POSITIONS.append(dict(positions="rotary", rotary_pairs="halves", rotary_base=50.0))
CHOICES = [
    POSITIONS,
    [dict(activation=name) for name in ("relu", "gelu", "gelu-by-tanh", "silu", "swiglu")],
    [dict(norm=name) for name in ("pre", "post")],
    [dict(normalisation=name) for name in ("layer-norm", "rms-norm")],
    [dict(num_groups=groups) for groups in (0, 1, 2)],
    [dict(window=window) for window in (0, 1)],
    [dict(bias=name) for name in ("feed-forward", "all", "none")],
    [dict(tying=name) for name in ("two-way", "none")],
    [dict(scaled_embedding=scaled) for scaled in (True, False)],
]


def pairs_in(row):
    """The pairs of choices in a row, which is the number of the choice of each field."""
    return set(combinations(enumerate(row), 2))


def rows_with_each_pair():
    """Rows of choices, few of them, in which each pair of choices stands."""
    rows, rng = [], np.random.default_rng(0)
    counts = [len(choices) for choices in CHOICES]
    left = set().union(*map(pairs_in, product(*map(range, counts))))
    while left:
        drawn = [tuple(map(int, rng.integers(counts))) for _ in range(200)]
        rows.append(max(drawn, key=lambda row: len(pairs_in(row) & left)))
        left -= pairs_in(rows[-1])
    return rows


def config_of(row):
    chosen = [choices[i] for choices, i in zip(CHOICES, row, strict=True)]
    return LanguageModelConfig(**SIZES, **{k: v for part in chosen for k, v in part.items()})


CONFIGS = list(map(config_of, rows_with_each_pair()))
of_each_pair = pytest.mark.parametrize(
    "config",
    CONFIGS,
    ids=lambda config: " ".join(str(v) for k, v in vars(config).items() if k not in SIZES),
)


def model_of(config):
    """One that is away from its first weights, among which gains of 1 hide mistakes."""
    model = LanguageModel(config, seed=3, dtype=np.float64)
    model.flat.data += 0.3 * np.random.default_rng(1).standard_normal(model.flat.data.size)
    return model


@of_each_pair
def test_it_has_the_loss_and_the_gradients_of_torch(config, monkeypatch):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    import torch_twin

    case = Case("model, language model of choices", whole(config, TARGET, LABELS))
    theirs = partial(torch_twin.chosen_language_model, config=config)
    monkeypatch.setitem(torch_twin.IN_TORCH, case.name, theirs)
    with standing_in(Kept):
        mine, theirs = ours(case), torch_twin.results(case)
    if config.bias == "all" and config.positions != "rotary":
        # What all keys have in common changes no weight, so that both have rounding alone.
        for name in [name for name in mine if name.endswith("key.bias")]:
            assert max(abs(mine.pop(name)).max(), abs(theirs.pop(name)).max()) < 1e-15
    errors = differences(mine, theirs)
    assert max(errors.values()) < 1e-9, errors


@pytest.mark.parametrize(("field", "shape"), [
    ("attention_dropout", (B, SIZES["num_heads"], T, T)),
    ("feed_forward_dropout", (B, T, F)),
])  # fmt: skip
@pytest.mark.parametrize(
    "chosen",
    [dict(positions="rotary", activation="swiglu"), dict(positions="alibi", activation="gelu")],
    ids=lambda chosen: " ".join(chosen.values()),
)
def test_each_dropout_acts_where_the_config_says(chosen, field, shape):
    config = LanguageModelConfig(**SIZES | {"num_layers": 1, field: 0.1} | chosen)
    recorder = Recorder()
    LanguageModel(config).forward(TARGET, recorder)
    assert recorder.shapes == [shape]


@pytest.mark.parametrize("scaled", [True, False])
def test_words_and_learned_positions_begin_as_large_as_each_other(scaled):
    sizes = SIZES | dict(vocabulary_size=500, d_model=64, num_heads=2, max_length=500)
    model = LanguageModel(LanguageModelConfig(**sizes, scaled_embedding=scaled))
    words, _ = model.embedding.forward(np.arange(500)[None])
    assert model.positions.table.data.std() == pytest.approx(words.std(), rel=0.05)


@of_each_pair
def test_its_gradient_is_the_slope_of_its_loss(config):
    slope, found = slope_and_gradient(model_of(config), LabelledBatch.of(TARGET, LABELS), step=1e-7)
    assert found == pytest.approx(slope, rel=1e-6)


@of_each_pair
@pytest.mark.parametrize("awake", [False, True])
def test_each_step_of_a_search_gives_what_reading_everything_anew_gives(config, awake):
    model = model_of(config)
    decoder, rng = LanguageModelDecoder(model), np.random.default_rng(0)
    with accelerated(awake):
        for count in (3, 1, 1, 2, 1):
            logits = decoder.step(rng.integers(1, V, count).tolist())
            anew, _ = model.forward(np.array([decoder.seen]))
            assert_but_for_rounding(logits, anew[0, -1], additions_of(model))


@pytest.mark.parametrize(("name", "parameters"), [
    ("gpt2-small", 124_439_808),
    ("smollm2-135m", 134_515_008),
])  # fmt: skip
def test_published_models_have_as_many_parameters_as_are_published(name, parameters):
    assert LanguageModelConfig.preset(name).num_parameters() == parameters
    shallow = LanguageModelConfig.preset(name, num_layers=1, vocabulary_size=1000)
    assert LanguageModel(shallow).num_parameters() == shallow.num_parameters()
    assert PRESETS.keys() == {"gpt2-small", "smollm2-135m"}
