import json

import fine_tuning
import pytest
from report import page
from tiny_run import resize_toy_corpus

from minitransformer.training.recipe import Recipe

SIZES = ["--d-model", "8", "--num-heads", "2", "--d-ff", "16", "--num-layers", "1"]
SIZES += ["--vocabulary-size", "150"]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """Where tiny models were pre-trained for an epoch, and tagged a tiny corpus with two seeds."""
    folder = tmp_path_factory.mktemp("tuning")
    train = fine_tuning.minitransformer

    def of_few_sizes(command):
        own = SIZES if "--from" not in command and "--resume" not in command else []
        own = [*own, "--epochs", "1"] if "bert-toy" in command else own
        return train([*command, *own])

    with pytest.MonkeyPatch.context() as patched:
        fine_tuning._corpus.cache_clear()
        resize_toy_corpus(patched, {"train": 120, "validation": 12, "test": 12})
        patched.setattr(fine_tuning, "minitransformer", of_few_sizes)
        patched.setattr(fine_tuning, "EPOCHS", {0.1: 2, 1.0: 1})
        options = ["--runs", folder / "runs", "--json", folder / "fine_tuning.json"]
        options += ["--shares", "0.1", "1", "--seeds", "1", "2"]
        assert fine_tuning.main([str(option) for option in options]) == 0
        patched.setattr(fine_tuning, "minitransformer", None)  # nothing is trained again
        assert fine_tuning.main([str(option) for option in options]) == 0
    return folder


def test_both_sides_are_scored_for_each_share_and_seed(tuned):
    rows = json.loads((tuned / "fine_tuning.json").read_text())["rows"]
    assert [(row["labels"], row["share"]) for row in rows] == [
        ("tense", 0.1), ("tense", 1.0), ("case", 0.1), ("case", 1.0),
    ]  # fmt: skip
    for row in rows:
        for side in ("scratch", "pretrained"):
            assert len(row[side]) == 2
            assert all(0 <= scores["accuracy"] <= 1 for scores in row[side])
        assert len(row["without_a_model"]) == 2


def test_what_is_not_told_apart_is_the_same_on_both_sides(tuned):
    for recipe in ("tagger", "classifier"):
        sides = [
            json.loads((tuned / f"runs/{recipe}-0.1-{side}-seed1/config.json").read_text())
            for side in ("scratch", "pretrained")
        ]
        assert sides[0]["recipe"] == sides[1]["recipe"]
        assert sides[0]["model"] == sides[1]["model"]
        began = [
            (tuned / f"runs/{recipe}-0.1-{side}-seed1/beginning.npz").exists()
            for side in ("scratch", "pretrained")
        ]
        assert began == [False, True]


def test_the_recipes_of_both_sides_have_the_sizes_of_what_is_pre_trained():
    recipes = [Recipe.load(name) for name in ("tagger", "classifier", "bert-toy")]
    sizes = [
        {name: value for name, value in r.model.items() if name not in ("kind", "dropout")}
        for r in recipes
    ]
    assert sizes[0] == sizes[1] == sizes[2]
    assert len({recipe.data.vocabulary_size for recipe in recipes}) == 1


def test_without_a_model_a_word_has_the_label_that_it_mostly_has(tuned, monkeypatch):
    corpus = {
        "train": [("die Frau .", "n n -"), ("die Tasche .", "a a -"), ("die Frau .", "n n -")],
        "validation": [("die .", "n -")],
        "test": [("die Tasche kauft .", "n a - -")],  # of kauft nothing is known: n
    }
    monkeypatch.setattr("minitransformer.tasks.tagging.labelled_toy_corpus", lambda _: corpus)
    monkeypatch.setattr(fine_tuning, "_corpus", lambda _: corpus)
    run = fine_tuning.run_at(tuned / "runs/tagger-1-scratch-seed1")
    assert fine_tuning.without_a_model(run) == 0.75


def test_the_results_page_shows_the_means(tuned):
    assert "| case | 100% |" in page(tuned)
