"""A recipe chooses the optimizer and the schedule; a run with any of them can be cut off."""

import json
import re
from dataclasses import asdict, fields

import numpy as np
import pytest
from optimizers import OF_EACH, Row
from run_files import edit_states
from tiny_run import (
    record,
    tiny_trainer,
    trained,
    trained_in_two,
    with_scores,
    with_values,
)

from minitransformer.commands.cli import main
from minitransformer.core.errors import InputError, listed
from minitransformer.models.registry import KINDS
from minitransformer.optim import OPTIMIZERS, optimizer_class
from minitransformer.optim.schedule import Plateau
from minitransformer.runs.checkpoint.file import CheckpointError, load_checkpoint
from minitransformer.runs.checkpoint.folder import checkpoints
from minitransformer.runs.run_folder import RunFolder
from minitransformer.training.config import CHOICES, TrainingConfig, settings_of
from minitransformer.training.recipe import Recipe, RecipeError, settings

PLATEAU = dict(schedule="plateau", plateau_epochs=1)


@pytest.fixture
def signs(monkeypatch):
    """An optimizer as a newcomer would add one: a file, which is there already, and a line."""
    monkeypatch.setitem(OPTIMIZERS, "signs", "signs:SignDescent")


SIGNS = Row("signs", None, dict(memory=0.5))


@pytest.mark.usefixtures("signs")
@pytest.mark.parametrize("row", [*OF_EACH.values(), SIGNS], ids=str)
def test_a_run_that_was_cut_off_goes_on_bit_for_bit(recipe, row, tmp_path):
    recipe = with_values(recipe, optimizer=row.name, **row.settings)
    whole = trained(recipe, tmp_path / "whole")
    assert type(whole.optimizer) is optimizer_class(row.name)
    assert row.settings.items() <= asdict(whole.optimizer.settings).items()
    trained_in_two(recipe, tmp_path / "cut", steps=2)
    assert record(tmp_path / "cut") == record(tmp_path / "whole")
    arrays, _ = load_checkpoint(checkpoints(whole.run.checkpoints)[-1])
    assert {name.partition("/")[0] for name in arrays} == {*whole.optimizer.vectors, "parameters"}
    assert Recipe.of_run(RunFolder(tmp_path / "cut")) == recipe


def test_a_checkpoint_that_counts_updates_of_adam_as_older_ones_is_gone_on_with(recipe, tmp_path):
    trained(recipe, tmp_path / "whole")
    cut = tiny_trainer(recipe, tmp_path / "cut")
    next(cut.steps())
    cut.save()
    newest = checkpoints(cut.run.checkpoints)[-1:]
    edit_states(newest, lambda state: state.update(adam_t=state["step"]))
    trained(recipe, tmp_path / "cut")
    assert record(tmp_path / "cut") == record(tmp_path / "whole")


# What a recipe may say of them


@pytest.mark.usefixtures("signs")
def test_the_command_line_has_its_settings(recipe, capsys, tmp_path):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    said = capsys.readouterr().out
    assert f"update of a gradient: {', '.join(OPTIMIZERS)}" in " ".join(said.split())
    of_signs = said.partition("[training] for signs:\n")[2].partition("\n\n")[0]
    assert "--memory X the share of the mean that stays " in " ".join(of_signs.split())
    toml = tmp_path / "signs.toml"
    toml.write_text(recipe.as_toml())
    assert main(["train", str(toml), "--memory=0.5", "--optimizer=signs", "--dry-run"]) == 0
    toml.write_text(capsys.readouterr().out)
    assert 'optimizer = "signs"\nmemory = 0.5\n' in toml.read_text()
    assert Recipe.load(toml) == with_values(recipe, optimizer="signs", memory=0.5)


EACH = [(choice, name) for choice, (names, _) in CHOICES.items() for name in names]


@pytest.mark.parametrize(("choice", "name"), EACH)
def test_each_setting_has_a_name_of_its_own_a_description_and_bounds(choice, name):
    others = {n for kind in KINDS for n in settings(kind)}
    others |= {f.name for c, n in EACH if c != choice for f in fields(settings_of(c, n))}
    for f in fields(settings_of(choice, name)):
        assert f.name not in others, f"another section has {f.name} already"
        assert re.search(rf"\b{f.name}: \S", settings_of(choice, name).__doc__)
        for value in {int: [-1], float: [-1.0, float("nan")]}.get(f.type, []):
            with pytest.raises(RecipeError, match=f"{f.name}={value} must "):
                Recipe().with_value(choice, name).with_value(f.name, value)


@pytest.mark.parametrize(("choices", "name", "value", "words"), [
    ({}, "momentum", 0.9, "momentum does nothing with optimizer='adam'"),
    (dict(optimizer="adamw"), "nesterov", True, "nesterov does nothing with optimizer='adamw'"),
    ({}, "plateau_epochs", 5, "plateau_epochs does nothing with schedule='linear'"),
])  # fmt: skip
def test_a_setting_of_another_is_refused_by_its_name(recipe, choices, name, value, words):
    with pytest.raises(RecipeError, match=f"{words}; leave it out, or choose "):
        with_values(recipe, **choices, **{name: value})
    with pytest.raises(InputError, match=words):
        TrainingConfig(**choices, options={name: value})


def test_another_optimizer_keeps_the_settings_that_it_has_too(recipe):
    changed = with_values(recipe, optimizer="sgd", weight_decay=0.2, momentum=0.9)
    assert changed.with_value("optimizer", "adamw").training.as_dict()["weight_decay"] == 0.2
    assert changed.with_value("optimizer", "adam") == recipe
    without = with_values(recipe, optimizer="sgd", weight_decay=0.0)
    adamw = dict(optimizer="adamw")
    assert with_values(without, **adamw) == with_values(recipe, **adamw)


@pytest.mark.parametrize("choices", [{}, dict(optimizer="sgd", momentum=0.9)])
def test_a_run_of_when_all_optimizers_had_all_settings_is_read_and_bound_as_it_was(choices):
    noted = dict(momentum=0.0, nesterov=False, weight_decay=0.0, plateau_epochs=3) | choices
    recipe = Recipe.from_dict({"training": noted})
    assert recipe == with_values(Recipe(), **choices)
    assert noted.items() <= recipe.identity().items()


@pytest.mark.parametrize("choice", CHOICES)
def test_what_is_not_there_is_refused_with_what_is(choice):
    names, _ = CHOICES[choice]
    with pytest.raises(InputError, match=f"{choice}='lion'; choose {listed(names)}$"):
        TrainingConfig(**{choice: "lion"})


# The plateau


def rates(run):
    """The learning rate of the last step of each epoch."""
    return list({e["epoch"]: e["learning_rate"] for e in run.log.entries() if "loss" in e}.values())


def test_the_rate_drops_to_a_tenth_where_validations_stand_still(recipe, tmp_path):
    recipe = with_values(recipe, epochs=7, warmup_steps=1, **PLATEAU | {"plateau_epochs": 2})
    trainer = with_scores(tiny_trainer(recipe, tmp_path), 1, 3, 2, 3, 4, 0, 0, 9)
    trainer.train()
    peak = recipe.training.peak_learning_rate
    drops = [0, 0, 0, 0, 1, 1, 1]  # after epoch 4, two after the best; and after 7
    np.testing.assert_allclose(rates(trainer.run), [peak / 10**n for n in drops], rtol=1e-14)
    assert trainer.plateau.state() == {"drops": 2, "epoch": 7}


@pytest.mark.parametrize("epochs", [1, 2, 3])
def test_it_drops_where_that_of_pytorch_does(epochs):
    torch = pytest.importorskip("torch")
    scores = np.random.default_rng(epochs).standard_normal(60).round(1)  # with ties
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, mode="max", factor=0.1, patience=epochs - 1, threshold=0, eps=0
    )
    ours = Plateau(epochs)
    best, best_epoch = -np.inf, 0
    for epoch, score in enumerate(scores, start=1):
        if score > best:
            best, best_epoch = score, epoch
        ours.look(epoch, best_epoch)
        theirs.step(score)
        config = TrainingConfig(schedule="plateau", peak_learning_rate=1.0, warmup_steps=1)
        rate = config.learning_rate(5, 10, None, ours.drops)
        assert rate == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-12)
    assert ours.drops > 5


@pytest.mark.parametrize("steps", [1, 5, 9])
def test_a_run_on_a_plateau_goes_on_bit_for_bit(recipe, tmp_path, steps):
    """In validations that stand still from the first."""
    recipe = with_values(recipe, peak_learning_rate=1e-30, epochs=4, **PLATEAU)
    whole = trained(recipe, tmp_path / "whole")
    assert whole.plateau.drops == 3
    cut = tiny_trainer(recipe, tmp_path / "cut")
    save = cut.run.save_checkpoint

    def save_and_end(arrays, state):
        save(arrays, state)
        if state["step"] == steps:
            raise KeyboardInterrupt

    cut.run.save_checkpoint = save_and_end
    with pytest.raises(KeyboardInterrupt):
        cut.train()
    trained(recipe, tmp_path / "cut")
    assert record(tmp_path / "cut") == record(tmp_path / "whole")


@pytest.mark.parametrize(("plateau", "words"), [
    (None, "it has no plateau"),
    ({"drops": 1}, "it has no epoch"),
    ({"drops": 10**9, "epoch": 1}, "no training of"),
    ({"drops": 1, "epoch": 9}, "no training of"),
    ({"drops": -1, "epoch": 0}, "its drops is -1, not a whole number"),
], ids=["missing", "half", "more drops than epochs", "of a later epoch", "below zero"])  # fmt: skip
def test_a_state_of_a_plateau_that_makes_no_sense_is_refused(recipe, tmp_path, plateau, words):
    recipe = with_values(recipe, **PLATEAU)
    trainer = tiny_trainer(recipe, tmp_path)
    trainer.save()

    def change(state):
        assert state.pop("plateau") == {"drops": 0, "epoch": 0}
        state.update({} if plateau is None else {"plateau": plateau})

    edit_states(checkpoints(trainer.run.checkpoints), change)
    with pytest.raises(CheckpointError, match=words):
        tiny_trainer(recipe, tmp_path)


def test_other_schedules_have_no_state(recipe, tmp_path):
    trainer = tiny_trainer(recipe, tmp_path)
    trainer.save()
    _, state = load_checkpoint(checkpoints(trainer.run.checkpoints)[0])
    assert "plateau" not in json.dumps({n: v for n, v in state.items() if n != "bound"})
