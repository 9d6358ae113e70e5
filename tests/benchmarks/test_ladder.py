import json

import ladder
import multi30k
import pytest
from report import page
from tiny_run import config_for
from tiny_translator import write_recipe

from minitransformer.training.recipe import Recipe

RECURRENT = ("num_heads = 2", 'kind = "recurrent"\nd_hidden = 16')
NOT_RECURRENT = ("d_ff", "num_encoder", "num_decoder", "norm")


@pytest.fixture(scope="module")
def climbed(tmp_path_factory, files_like_multi30k):
    """Where a Transformer and a recurrent model were trained for two epochs, and compared."""
    folder = tmp_path_factory.mktemp("ladder")
    recipe = write_recipe(folder)
    text = recipe.read_text(encoding="utf-8").replace("epochs = 14", "epochs = 2")
    recipe.write_text(text, encoding="utf-8")
    lines = text.replace(*RECURRENT).splitlines(keepends=True)
    other = folder / "recurrent.toml"
    other.write_text("".join(x for x in lines if not x.startswith(NOT_RECURRENT)), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ladder, "RECIPES", {str(other): "recurrent", str(recipe): "Transformer"})
        patched.setattr(ladder, "SPLIT", "validation")
        patched.setattr(ladder, "STEPS", 1)
        options = ["--data-dir", folder, "--runs", folder / "runs", "--results", folder]
        options += ["--rounds", "1", "--decodings", "1"]
        assert ladder.main([str(option) for option in options]) == 0
    return folder


def test_the_trainings_are_equal_and_the_models_of_about_one_size():
    recipes = [Recipe.load(name) for name in ladder.RECIPES]
    assert all(recipe.data == recipes[0].data for recipe in recipes)
    epochs = {(recipe.training.epochs, recipe.training.batch_tokens) for recipe in recipes}
    assert len(epochs) == 1
    sizes = [config_for(recipe, 8000).num_parameters() for recipe in recipes]
    assert max(sizes) < 1.1 * min(sizes)


def test_each_rung_has_its_own_scores_and_times(climbed):
    rows = json.loads((climbed / "ladder.json").read_text())["rows"]
    assert [row["recipe"] for row in rows] == ["recurrent", "captions"]
    for row in rows:
        run = json.loads((climbed / f"{row['recipe']}-seed1.json").read_text())
        assert run["epochs"] == row["epochs"] == 2
        greedy = run["splits"]["validation"]["greedy"]["bleu_cased_13a"]
        assert row["bleu"]["greedy"] == greedy
        assert row["step_seconds"] > 0
        assert all(seconds > 0 for seconds in row["decode_seconds"].values())
    assert rows[0]["parameters"] != rows[1]["parameters"]


def test_the_results_page_shows_each_rung(climbed):
    text = page(climbed)
    assert "recurrent-seed1" in text
    assert "Transformer  " in text
    assert "1 to 8" in text


def test_jobs_take_turns():
    order = []
    jobs = [lambda: order.append("a"), lambda: order.append("b")]
    assert len(ladder.in_turn(jobs, 3)) == 2
    assert order == list("ababab")


def test_sentences_are_scored_with_those_of_their_length():
    right, wrong = "a dog runs in the park", "nobody says a thing here"
    pairs = [("ein Hund läuft", right), ("so " * 9, right), ("so " * 11, right)]
    rows = multi30k.by_source_length(pairs, [right, wrong, right])
    assert [(row["words"], row["sentences"]) for row in rows] == [("1 to 8", 1), ("9 to 11", 2)]
    assert rows[0]["bleu_cased_13a"] == pytest.approx(100)
    assert rows[1]["bleu_cased_13a"] < 90
