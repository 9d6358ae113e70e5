"""What --dry-run prints is the recipe, whatever stands in it."""

import math
import tomllib

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from minitransformer.tasks.splits import ParallelData
from minitransformer.training.recipe import Recipe, RecipeError, settings

TEXTS = st.text() | st.text("\\\"'#\n\r\t\0\x7f\x85\u2028äß–😀")
POSITIVE = st.floats(0, exclude_min=True, allow_infinity=False)
SHARES = st.floats(0, 1, exclude_max=True)
VALUES = (
    dict.fromkeys(set(ParallelData.paths) & settings().keys(), TEXTS)
    | {"accelerate": st.booleans(), "seed": st.integers(0, 2**63 - 1)}
    | {"peak_learning_rate": POSITIVE, "clip_norm": POSITIVE | st.just(math.inf)}
    | {"dropout": SHARES, "subword_dropout": SHARES, "epsilon": POSITIVE}
)


@examples(max_examples=15)
@given(st.fixed_dictionaries({}, optional=VALUES))
def test_what_is_printed_is_read_back_as_the_same_recipe(values):
    recipe = Recipe.load("toy")
    for name, value in values.items():
        recipe = recipe.with_value(name, value)
    printed = recipe.as_toml()
    assert printed.isascii()  # so that no terminal and no editor changes it
    assert Recipe.from_dict(tomllib.loads(printed)) == recipe
    assert sum(map(len, tomllib.loads(printed).values())) == len(settings())


def test_a_path_that_is_no_unicode_is_refused_by_name():
    recipe = Recipe().with_value("train_source", "caf\udce9.de")
    with pytest.raises(RecipeError, match=r"train_source='caf.*' is no Unicode"):
        recipe.as_toml()
