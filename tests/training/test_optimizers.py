"""A recipe chooses the optimizer and the schedule; a run with any of them can be cut off."""

import json

import numpy as np
import pytest
from tiny_run import record, tiny_recipe, tiny_trainer, trained, trained_in_two

from minitransformer.commands.cli import main
from minitransformer.core.errors import InputError
from minitransformer.optim import OPTIMIZERS, optimizer_class
from minitransformer.optim.schedule import Plateau
from minitransformer.runs.checkpoint.file import CheckpointError, load_checkpoint, save_checkpoint
from minitransformer.runs.checkpoint.folder import checkpoints
from minitransformer.training import loop
from minitransformer.training.config import TrainingConfig

OPTIONS = {  # a run of each, and what its optimizer keeps
    "adam": ({}, ["m", "v"]),
    "adamw": (dict(weight_decay=0.1), ["m", "v"]),
    "sgd": (dict(momentum=0.9, nesterov=True, weight_decay=1e-3), ["velocity"]),
}
PLATEAU = dict(schedule="plateau", plateau_epochs=1)

every_optimizer = pytest.mark.parametrize("name", OPTIMIZERS)


def with_values(recipe, **values):
    for name, value in values.items():
        recipe = recipe.with_value(name, value)
    return recipe


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    return tiny_recipe(tmp_path_factory.mktemp("corpus"))


@every_optimizer
def test_a_run_that_was_cut_off_goes_on_bit_for_bit(recipe, name, tmp_path):
    options, vectors = OPTIONS[name]
    recipe = with_values(recipe, optimizer=name, **options)
    whole = trained(recipe, tmp_path / "whole")
    assert type(whole.optimizer) is optimizer_class(name)
    for option, value in options.items():
        assert getattr(whole.optimizer, option) == value
    trained_in_two(recipe, tmp_path / "cut", steps=2)
    assert record(tmp_path / "cut") == record(tmp_path / "whole")
    arrays, _ = load_checkpoint(checkpoints(whole.run.checkpoints)[-1])
    assert sorted({name.partition("/")[0] for name in arrays}) == sorted([*vectors, "parameters"])


def test_different_optimizers_come_to_different_models(recipe, tmp_path):
    found = set()
    for name, (options, _) in OPTIONS.items():
        run = trained(with_values(recipe, optimizer=name, epochs=1, **options), tmp_path / name)
        found.add(run.model.flat.data.tobytes())
    assert len(found) == len(OPTIONS)


def test_a_checkpoint_that_counts_the_updates_of_adam_as_older_ones_did_is_gone_on_with(
    recipe, tmp_path
):
    trained(recipe, tmp_path / "whole")
    cut = tiny_trainer(recipe, tmp_path / "cut")
    next(cut.steps())
    cut.save()
    (*_, path) = checkpoints(cut.run.checkpoints)
    arrays, state = load_checkpoint(path)
    save_checkpoint(path, arrays, state | {"adam_t": state["step"]})
    trained(recipe, tmp_path / "cut")
    assert record(tmp_path / "cut") == record(tmp_path / "whole")


# What does nothing is refused


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            dict(momentum=0.9),
            "momentum=0.9 does nothing with optimizer='adam'; leave it out, or choose sgd",
        ),
        (
            dict(optimizer="adam", weight_decay=0.1),
            "weight_decay=0.1 does nothing with optimizer='adam'; leave it out, or choose adamw or "
            "sgd",
        ),
        (dict(optimizer="adamw", weight_decay=0.1, nesterov=True), "nesterov=True does nothing"),
        (dict(optimizer="sgd", nesterov=True), "nesterov=True does nothing without momentum"),
        (dict(optimizer="adamw"), "without a weight_decay is adam; give one"),
        (
            dict(plateau_epochs=5),
            "plateau_epochs=5 does nothing with schedule='linear'; leave it out, or choose plateau",
        ),
    ],
    ids=str,
)
def test_a_field_that_does_nothing_is_refused_by_its_name(recipe, tmp_path, fields, words):
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        tiny_trainer(with_values(recipe, **fields), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_command_line_refuses_it_too(tmp_path, capsys):
    run = tmp_path / "run"
    assert main(["train", "toy", "--momentum", "0.9", "--run-folder", str(run)]) == 1
    assert "momentum=0.9 does nothing with optimizer='adam'" in capsys.readouterr().err
    assert not run.exists()


def test_an_optimizer_that_is_not_there_is_refused_with_those_there_are():
    with pytest.raises(InputError, match="optimizer='lion'; choose one of adam, adamw, sgd"):
        TrainingConfig(optimizer="lion")


def test_an_optimizer_is_a_class_and_a_line(recipe, tmp_path, monkeypatch):
    monkeypatch.setitem(OPTIMIZERS, "signs", "signs:SignDescent")
    recipe = with_values(recipe, optimizer="signs", momentum=0.5)
    trainer = trained(recipe, tmp_path / "whole")
    assert (type(trainer.optimizer).__name__, trainer.optimizer.momentum) == ("SignDescent", 0.5)
    trained_in_two(recipe, tmp_path / "cut", steps=3)
    assert record(tmp_path / "cut") == record(tmp_path / "whole")


def test_noam_without_a_width_is_refused():
    with pytest.raises(InputError, match="'noam' takes the peak from d_model, which this model"):
        TrainingConfig(schedule="noam").require_used({})


# The plateau


def with_scores(trainer, *scores):
    remaining = iter(scores)
    trainer.task.validate = lambda model: {"bleu": next(remaining)}
    return trainer


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
        rate = TrainingConfig(peak_learning_rate=1.0, warmup_steps=1, **PLATEAU).learning_rate(
            5, 10, None, ours.drops
        )
        assert rate == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-12)
    assert ours.drops > 5


@pytest.mark.parametrize("steps", [1, 5, 9])
def test_a_run_on_a_plateau_goes_on_bit_for_bit(recipe, tmp_path, steps):
    """In validations that stand still from the first."""
    recipe = with_values(recipe, peak_learning_rate=1e-30, epochs=4, **PLATEAU)
    whole = trained(recipe, tmp_path / "whole")
    assert whole.plateau.drops == 3
    cut = tiny_trainer(recipe, tmp_path / "cut")
    saved = interrupt_after(cut, steps)
    with pytest.raises(KeyboardInterrupt):
        cut.train()
    assert saved == [steps]
    trained(recipe, tmp_path / "cut")
    assert record(tmp_path / "cut") == record(tmp_path / "whole")


def interrupt_after(trainer, steps):
    """Let it end with a KeyboardInterrupt as soon as that step is saved."""
    saved, save = [], trainer.run.save_checkpoint

    def save_and_end(arrays, state):
        save(arrays, state)
        if state["step"] == steps:
            saved.append(steps)
            raise KeyboardInterrupt

    trainer.run.save_checkpoint = save_and_end
    return saved


@pytest.mark.parametrize(
    ("plateau", "words"),
    [
        (None, "it has no plateau"),
        ({"drops": 1}, "it has no epoch"),
        ({"drops": 10**9, "epoch": 1}, "no training of"),
        ({"drops": 1, "epoch": 9}, "no training of"),
        ({"drops": -1, "epoch": 0}, "its drops is -1, not a whole number"),
    ],
    ids=["missing", "half", "more drops than epochs", "of a later epoch", "below zero"],
)
def test_a_state_of_a_plateau_that_makes_no_sense_is_refused(recipe, tmp_path, plateau, words):
    recipe = with_values(recipe, **PLATEAU)
    trainer = tiny_trainer(recipe, tmp_path)
    trainer.save()
    (path,) = checkpoints(trainer.run.checkpoints)
    arrays, state = load_checkpoint(path)
    assert state.pop("plateau") == {"drops": 0, "epoch": 0}
    save_checkpoint(path, arrays, state if plateau is None else state | {"plateau": plateau})
    with pytest.raises(CheckpointError, match=words):
        tiny_trainer(recipe, tmp_path)


def test_other_schedules_have_no_state(recipe, tmp_path):
    trainer = tiny_trainer(recipe, tmp_path)
    trainer.save()
    _, state = load_checkpoint(checkpoints(trainer.run.checkpoints)[0])
    assert "plateau" not in json.dumps({n: v for n, v in state.items() if n != "bound"})


def test_the_loop_that_is_to_be_read_goes_by_the_recipe_too(recipe, tmp_path):
    options = dict(optimizer="sgd", momentum=0.9, shards=1, average=1, peak_learning_rate=1e-30)
    recipe = with_values(recipe, **options, **PLATEAU)
    theirs = trained(recipe, tmp_path / "trained")
    ours = tiny_trainer(recipe, tmp_path / "loop")
    with ours.workers.one_blas_thread():
        losses = list(loop.train(ours.model, ours.task, ours.config))
    log = [entry for entry in theirs.run.log.entries() if entry["kind"] == "train"]
    assert losses == [(entry["loss"], entry["nll"]) for entry in log]
    assert ours.model.flat.data.tobytes() == theirs.model.flat.data.tobytes()
