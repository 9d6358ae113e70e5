"""One Trainer, session, run folder and recipe for data that are no text: all that a task needs.

What it promises as all tasks do is in test_every_task.py.
"""

import tomllib

import digits
import numpy as np
import pytest
from digits import DigitsConfig, TellingDigits
from tiny_run import trained
from tiny_tasks import telling_digits as recipe_for

from minitransformer.cases.case import B, Case
from minitransformer.cases.models import whole
from minitransformer.commands.cli import main
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.task import Task
from minitransformer.training.recipe import Recipe, RecipeError


@pytest.fixture(scope="module", autouse=True)
def _known():
    with pytest.MonkeyPatch.context() as patch:
        digits.known(patch)
        yield


def train(folder, *more, **changes):
    """The exit status of ``minitransformer train`` by a file, in the folder ``run`` there."""
    (folder / "digits.toml").write_text(recipe_for(**changes).as_toml())
    return main(["train", str(folder / "digits.toml"), "--run-folder", str(folder / "run"), *more])


def test_its_gradients_are_checked_by_a_line_of_a_table():
    case = Case("model, digits", whole(DigitsConfig(10, 6), (B, 8, 8), np.array([0, 3, 9])), 3)
    report = case.check()
    assert report.right, report
    assert report.tensors[0].name == "dinput_0"  # of the pictures


def test_a_training_says_how_fast_it_is_and_what_to_try(tmp_path, capsys):
    assert train(tmp_path, epochs=1) == 0
    said = capsys.readouterr().err
    assert " pictures/s" in said
    assert f"done; try it: minitransformer evaluate {tmp_path / 'run'}" in said


def test_a_run_keeps_what_its_task_says_and_nothing_of_text(tmp_path):
    trainer = trained(recipe_for(epochs=1), tmp_path)
    mean = np.load(tmp_path / "mean.npy")
    np.testing.assert_array_equal(mean, trainer.task.mean)
    assert mean.any()
    assert not (tmp_path / "vocabulary.model").exists()
    _, sections = trainer.run.load_config()
    assert sections["data"] == {"corpus": "drawn", "per_digit": 6, "noise": 0.5}


def test_a_trained_run_is_looked_at_as_those_of_text_are(tmp_path, capsys):
    trained(recipe_for(), tmp_path)
    for command in ("evaluate", "info", "plot"):
        assert main([command, str(tmp_path)]) == 0
    with pytest.raises(SystemExit, match="2"):
        main(["evaluate", str(tmp_path), "--beam-size", "4"])
    assert "validated once more; leave out --beam-size" in capsys.readouterr().err
    assert main(["translate", str(tmp_path), "text"]) == 1
    assert f"try it: minitransformer evaluate {tmp_path}" in capsys.readouterr().err


def test_what_was_trained_stays_if_it_cannot_be_started_over(tmp_path, monkeypatch, capsys):
    """With pictures of other digits, which another model would tell."""
    trained(recipe_for(), tmp_path)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(TellingDigits, "of_data", classmethod(lambda *_: {"num_digits": 11}))
    assert main(["train", "--resume", str(tmp_path), "--start-over"]) == 1
    assert "num_digits is 10 there, and 11 here" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_a_training_begins_with_another(tmp_path, capsys):
    trained(recipe_for(hidden=5), tmp_path / "first")
    assert train(tmp_path, "--from", str(tmp_path / "first")) == 0
    assert f"begins with the parameters of {tmp_path / 'first'}" in capsys.readouterr().err
    assert RunFolder(tmp_path / "run").load_config()[0].hidden == 5


def test_its_fields_are_options_and_those_of_text_are_refused(capsys):
    recipe = recipe_for(noise=0.25)
    assert Recipe.from_dict(tomllib.loads(recipe.as_toml())) == recipe
    assert "unit" not in recipe.identity()
    with pytest.raises(RecipeError, match=r"vocabulary_size, which is for trans.*; leave"):
        recipe.with_value("vocabulary_size", 100)
    with pytest.raises(RecipeError, match="noise, which is for telling digits; leave it out"):
        Recipe().with_value("noise", 0.1)
    with pytest.raises(SystemExit, match="0"):
        main(["train", "--help"])
    assert "[data] for telling digits:\n  --per-digit N " in capsys.readouterr().out


# What identifies data


def test_arrays_are_told_apart_by_shape_type_and_each_number():
    pictures = np.zeros((100, 8, 8), np.float32)  # which NumPy prints shortened
    other = pictures.copy()
    other[50, 4, 4] = 1
    other_types = pictures.astype(np.float64), pictures.view(np.int32)
    of_pictures = pictures, other, pictures.reshape(50, 16, 8), *other_types
    several = [
        *((array, np.arange(100)) for array in of_pictures),
        (pictures, np.arange(100)[::-1]),
        [(pictures, np.arange(50)), np.arange(50, 100)],
        *([("one", "two")], [("one",), ("two",)], [("on", "etwo")]),
    ]
    assert len({Task.fingerprint(examples) for examples in several}) == len(several)
    with pytest.raises(TypeError, match="a NoneType cannot be told from others by its bytes"):
        Task.fingerprint([None])
    copies = tuple(np.asfortranarray(array) for array in several[0])
    assert Task.fingerprint(copies) == Task.fingerprint(several[0])
