"""A training that begins with what another run has learned, and with nothing else."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from run_files import contents
from tiny_run import record, tiny_recipe, tiny_trainer, trained
from tiny_tasks import SENTENCES, masked_language_modelling
from tiny_tasks import tagging as recipe_for

from minitransformer.commands.cli import main
from minitransformer.commands.info import run_facts
from minitransformer.runs.checkpoint.file import RunError
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.task import run_at
from minitransformer.training.pretrained import Pretrained
from minitransformer.training.recipe import Recipe, RecipeError

TEXT = "".join(f"the {animal} {verb}.\n" for animal, verb in SENTENCES)
HEAD = "output_projection.weight"


def masked_recipe(folder):
    return masked_language_modelling(folder, TEXT, vocabulary_size=42, max_length=20)


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretrained")
    trained(masked_recipe(folder / "corpus"), folder / "run")
    return folder / "run"


def begun(pretrained, recipe, folder, **chosen):
    """A Trainer that has not made a step."""
    pretrained = Pretrained.of_run(pretrained)
    return tiny_trainer(pretrained.fitted(recipe, chosen), folder, pretrained=pretrained)


def fine_tuned(pretrained, recipe, folder):
    pretrained = Pretrained.of_run(pretrained)
    trained(pretrained.fitted(recipe, {}), folder, pretrained)
    return folder


def parameters(trainer):
    return {name: p.data.copy() for name, p in trainer.model.named_parameters()}


def learned(run):
    arrays, _ = RunFolder(run).load_parameters()
    return {name.removeprefix("parameters/"): array for name, array in arrays.items()}


def test_a_tagger_begins_with_all_that_was_learned_but_for_what_it_says(pretrained, tmp_path):
    """And with its vocabulary."""
    first, second = (
        parameters(begun(pretrained, recipe_for(tmp_path, seed=seed), tmp_path / str(seed)))
        for seed in (1, 2)
    )
    for name, array in learned(pretrained).items():
        np.testing.assert_array_equal([first[name], second[name]], [array, array])
    assert first.keys() - learned(pretrained).keys() == {HEAD}
    assert (first[HEAD] != second[HEAD]).all()
    vocabulary = (tmp_path / "1" / "vocabulary.model").read_bytes()
    assert vocabulary == (pretrained / "vocabulary.model").read_bytes()


def test_what_it_says_begins_as_it_would_without_another_run(pretrained, tmp_path):
    ours = parameters(begun(pretrained, recipe_for(tmp_path), tmp_path / "ours"))
    recipe = recipe_for(tmp_path, vocabulary_size=42)
    other = parameters(tiny_trainer(recipe, tmp_path / "other"))
    np.testing.assert_array_equal(ours[HEAD], other[HEAD])
    assert (ours["positions.table"] != other["positions.table"]).any()


def test_a_tagger_may_begin_with_a_tagger_of_other_labels(pretrained, tmp_path):
    first = fine_tuned(pretrained, recipe_for(tmp_path), tmp_path / "first")
    content = "".join(f"{verb}\tthe {animal} {verb}.\n" for animal, verb in SENTENCES)
    second = parameters(begun(first, recipe_for(tmp_path / "x", content), tmp_path / "second"))
    taken = learned(first)
    for name, array in second.items():
        assert np.array_equal(array, taken[name]) == (name != HEAD)


def test_a_masked_language_model_goes_on_with_another_text(pretrained, tmp_path):
    recipe = masked_recipe(tmp_path)
    found = parameters(begun(pretrained, recipe, tmp_path / "run"))
    for name, array in learned(pretrained).items():
        np.testing.assert_array_equal(found[name], array)


def test_sizes_come_from_the_other_run_and_dropout_from_the_recipe(pretrained, tmp_path):
    recipe = recipe_for(tmp_path, d_model=16, num_layers=3, max_length=30, dropout=0.3)
    fitted = Pretrained.of_run(pretrained).fitted(recipe, {})
    sizes = [fitted.values()[n] for n in ("d_model", "num_layers", "max_length", "dropout")]
    assert sizes == [8, 1, 20, 0.3]


@pytest.mark.parametrize("field", [dict(d_model=16), dict(norm="post"), dict(vocabulary_size=50)])
def test_a_size_that_is_chosen_otherwise_is_refused_by_its_name(field, pretrained, tmp_path):
    ((name, value),) = field.items()
    with pytest.raises(RecipeError, match=f"{name} is .* in .*run, .*, and {value} here"):
        begun(pretrained, recipe_for(tmp_path, **field), tmp_path / "run", **field)


@pytest.mark.parametrize(
    ("kind", "begins"),
    [("transformer", "begins with random"), ("language-model", "can begin with language-model$")],
)
def test_a_kind_that_shares_no_encoder_is_refused(kind, begins, pretrained, tmp_path):
    recipe = Recipe().with_value("kind", kind)
    with pytest.raises(RecipeError, match=f"kind 'masked.*of kind '{kind}' {begins}"):
        Pretrained.of_run(pretrained).fitted(recipe, {})


def test_a_translator_is_nothing_to_begin_with(tmp_path):
    trained(tiny_recipe(tmp_path / "corpus"), tmp_path / "run")
    with pytest.raises(RecipeError, match="can begin with masked-language-model or"):
        Pretrained.of_run(tmp_path / "run").fitted(recipe_for(tmp_path), {})


# What the run keeps of it


@pytest.fixture(scope="module")
def tuned(pretrained, tmp_path_factory):
    """A folder in which a fine-tuning is whole, beside its corpus."""
    folder = tmp_path_factory.mktemp("tuned")
    fine_tuned(pretrained, recipe_for(folder / "corpus"), folder / "run")
    return folder / "run"


def resume(run):
    trained(Recipe.of_run(RunFolder(run)), run)


def test_it_goes_on_bit_for_bit_without_the_other_run(tuned, tmp_path):
    cut = shutil.copytree(tuned, tmp_path / "cut")
    (cut / "model.npz").unlink()
    max((cut / "checkpoints").iterdir()).unlink()
    resume(cut)
    assert record(cut) == record(tuned)


def test_a_run_killed_before_its_first_checkpoint_begins_with_it(pretrained, tuned, tmp_path):
    killed = shutil.copytree(tuned, tmp_path / "killed")
    for path in (killed / "model.npz", killed / "metrics.jsonl"):
        path.unlink()
    for name in ("checkpoints", "epochs"):
        shutil.rmtree(killed / name)
    resume(killed)
    assert record(killed) == record(tuned)


def test_it_can_be_started_over(tuned, tmp_path, capsys):
    again = shutil.copytree(tuned, tmp_path / "again")
    assert main(["train", "--resume", str(again), "--start-over"]) == 0
    assert record(again) == record(tuned) == record(again / "before-1")
    assert run_facts(run_at(again / "before-1"))["finished"].startswith("yes")


def test_of_a_killed_run_the_beginning_may_be_left_and_only_the_same_one(pretrained, tmp_path):
    recipe, folder = recipe_for(tmp_path), tmp_path / "run"
    begun(pretrained, recipe, folder)
    for name in ("config.json", "vocabulary.model"):
        (folder / name).unlink()
    begun(pretrained, recipe, folder)
    (folder / "config.json").unlink()
    shutil.copy(pretrained / "model.npz", folder / "beginning.npz")
    with pytest.raises(RunError, match="is there already, and is not what this training"):
        begun(pretrained, recipe, folder)
    assert not list(folder.glob("*.tmp"))


# The command


def test_the_command_trains_from_a_run_and_leaves_that_alone(pretrained, tmp_path, capsys):
    before = contents(pretrained)
    recipe_for(tmp_path)
    options = ["--corpus", "labelled", "--labelled", tmp_path / "labels.tsv"]
    options += ["--epochs", "1", "--batch-tokens", "120", "--run-folder", tmp_path / "run"]
    command = ["train", "tagger", "--from", pretrained, *options]
    assert main([*map(str, command), "--dry-run"]) == 0
    assert "d_model = 8\n" in capsys.readouterr().out
    assert not (tmp_path / "run").exists()
    assert main(list(map(str, command))) == 0
    shown = capsys.readouterr().err
    assert f"begins with the parameters of {pretrained}, " in shown
    assert f"try it: minitransformer tag {tmp_path}" in shown
    assert contents(pretrained) == before


def test_a_name_of_a_run_is_told_where_that_is(tuned, tmp_path, monkeypatch, capsys):
    (tmp_path / "runs" / "bert-toy").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert main(["train", "tagger", "--from", "bert-toy"]) == 1
    assert capsys.readouterr().err.endswith("there is no such folder\n")  # and no run
    shutil.copytree(tuned, tmp_path / "runs" / "bert-toy", dirs_exist_ok=True)
    assert main(["train", "tagger", "--from", "bert-toy"]) == 1
    expected = f"there is no such folder; did you mean {Path('runs/bert-toy')}?\n"
    assert capsys.readouterr().err.endswith(expected)
