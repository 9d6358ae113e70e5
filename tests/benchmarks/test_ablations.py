"""What table_3.py takes out of a Transformer: gradients stay right, and nothing else is gone."""

from itertools import product

import numpy as np
import pytest
import table_3
from _ablations import AblatedConfig, known
from plain_search import SOURCE, Prefixes
from rounding import additions_of, assert_but_for_rounding

from minitransformer.cases.case import SOURCE as IDS
from minitransformer.cases.case import TARGET, Case, V
from minitransformer.cases.models import small_config, whole
from minitransformer.core.twins import accelerated
from minitransformer.decoding.incremental import IncrementalDecoder
from minitransformer.decoding.states import decoder_for
from minitransformer.models.registry import new_model

SMALL = vars(small_config())
PLAIN = SMALL | dict(dropout=0.0, attention_dropout=0.0, feed_forward_dropout=0.0, max_length=40)
WITHOUT = {
    "nothing": {},
    "heads of their own widths": dict(d_k=2, d_v=5),
    "learned positions": dict(positions="learned"),
    "no positions": dict(positions="none"),
    "no feed-forward networks": dict(feed_forward=False),
    "no residual connections": dict(residual=False),
    "no layer norm": dict(layer_norm=False),
    "next to nothing": dict(d_k=1, positions="none", feed_forward=False, residual=False),
}
WHERE_IT_MATTERS = "no residual connections", "no layer norm", "next to nothing"
each = pytest.mark.parametrize(
    ("what", "norm"), [*product(WITHOUT, ["pre"]), *product(WHERE_IT_MATTERS, ["post"])]
)


@pytest.fixture(autouse=True)
def _known():
    with known():
        yield


def model_without(what, norm, dtype=np.float64):
    model = new_model(AblatedConfig(**(PLAIN | WITHOUT[what] | {"norm": norm})), seed=1)
    model.flat.data += 0.2 * np.random.default_rng(1).standard_normal(model.flat.data.size)
    return model.to(dtype=dtype)


@each
def test_the_gradient_is_right_with_dropout(what, norm):
    config = AblatedConfig(**(SMALL | WITHOUT[what] | {"norm": norm}))
    report = Case(what, whole(config), 3, 1e-6).check()
    assert report.right, str(report)


@each
def test_the_parameters_are_counted(what, norm):
    model = model_without(what, norm)
    assert model.num_parameters() == model.config.num_parameters()


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_without_nothing_it_is_the_transformer(norm):
    ours, theirs = model_without("nothing", norm), new_model(small_config(norm))
    theirs.to(dtype=np.float64).flat.data[:] = ours.flat.data
    batch = IDS, TARGET
    assert np.array_equal(ours.forward(*batch)[0], theirs.forward(*batch)[0])


@each
def test_step_by_step_and_with_twins_it_says_the_same(what, norm):
    model = model_without(what, norm)
    decoder, prefixes = decoder_for(model, SOURCE), Prefixes(model, SOURCE)
    assert isinstance(decoder, IncrementalDecoder)
    for ids in ([[1], [1], [1]], [[4], [5], [6]], [[7], [7], [3]]):
        expected = prefixes.step(np.array(ids))
        assert_but_for_rounding(decoder.step(np.array(ids)), expected, additions_of(model))
    logits, _ = model.forward(IDS, TARGET)
    with accelerated():
        assert_but_for_rounding(model.forward(IDS, TARGET)[0], logits, additions_of(model))


def test_without_positions_a_source_is_a_bag_of_words():
    swapped = IDS.copy()
    swapped[:, [0, 1]] = swapped[:, [1, 0]]
    for what in WITHOUT:
        model = model_without(what, "pre")
        differs = np.abs(model.forward(IDS, TARGET)[0] - model.forward(swapped, TARGET)[0]).max()
        assert (differs < 1e-12) == (model.config.positions == "none")


def test_without_residual_connections_a_layer_that_returns_nothing_forgets_all():
    for what in WITHOUT:
        model = model_without(what, "pre")
        model.decoder.layers[0].self_attention.w_output.data[:] = 0
        other = np.where(TARGET, (TARGET + 3) % (V - 1) + 1, 0)
        logits = [model.forward(IDS, target)[0][0] for target in (TARGET, other)]
        forgets = np.abs(logits[0] - logits[1]).max() < 1e-12
        assert forgets == (not model.config.residual)


def test_every_row_differs_from_the_base_in_what_its_name_says():
    recipes = {row: table_3.CLAIM.recipe_of(row).as_dict() for row in table_3.ROWS}
    base = recipes.pop(table_3.BASE)
    for row, recipe in recipes.items():
        changes = table_3.ROWS[row]
        differing = {
            name: value
            for section in recipe
            for name, value in recipe[section].items()
            if value != base[section][name]
        }
        assert differing == changes
