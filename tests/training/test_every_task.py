"""What every task promises; one that is new in the table wants a recipe here."""

import pytest
import test_language_modelling
import test_masked_language_modelling
import test_tagging
from tiny_run import record, tiny_recipe, trained, trained_in_two

from minitransformer.training.task import TASKS

RECIPES = {
    "translation": tiny_recipe,
    "language modelling": test_language_modelling.recipe_for,
    "masked language modelling": test_masked_language_modelling.recipe_for,
    "tagging": test_tagging.recipe_for,
}


@pytest.mark.parametrize("task", TASKS)
def test_a_training_that_was_cut_off_goes_on_bit_for_bit(task, tmp_path):
    recipe = RECIPES[task](tmp_path / "corpus")
    trained(recipe, tmp_path / "whole")
    trained_in_two(recipe, tmp_path / "cut", steps=5)
    assert record(tmp_path / "cut") == record(tmp_path / "whole")
