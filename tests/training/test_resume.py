"""A run that was cut off, at whatever moment and in whatever way, ends as one that was not."""

import os
import shutil
import signal
import sys
import threading

import pytest
from elsewhere import ended
from run_files import contents
from tiny_run import record, tiny_trainer, trained

from minitransformer.core.interrupts import Stopped
from minitransformer.runs.checkpoint.folder import checkpoint_path, checkpoints
from minitransformer.runs.run_folder import RunFolder

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")


@pytest.fixture(scope="module")
def whole(recipe, tmp_path_factory):
    """The record of a run that nobody interrupts."""
    folder = tmp_path_factory.mktemp("whole")
    trained(recipe, folder)
    return record(folder)


@pytest.mark.slow
@needs_fork
@pytest.mark.parametrize(("kind", "kills"), [("transformer", 40), ("residual-network", 20)])
def test_a_run_killed_at_random_moments_equals_one_that_nobody_kills(kind, kills, tmp_path):
    """Really killed, so often: while it starts, trains, validates, logs, saves, ends."""
    ended("kill_often.py", tmp_path, str(kills), kind)
    runs = sorted(tmp_path.glob("killed-*"))
    assert runs
    for run in runs:
        assert record(run) == record(tmp_path / "whole")


@pytest.mark.slow
def test_a_run_cut_off_before_any_one_change_of_its_folder_equals_the_whole_one(recipe, tmp_path):
    """What a kill leaves is what is there: copies of the folder are made before each change."""
    recipe = recipe.with_value("average", 1).with_value("save_every", 4)
    run, copies = tmp_path / "run", tmp_path / "copies"
    copying = [True]

    def copy(event, arguments):
        if not copying[0]:
            return
        changes = event in ("os.rename", "os.remove", "os.mkdir") or (
            event == "open" and isinstance(arguments[1], str) and arguments[1][0] in "wa"
        )
        if changes and str(arguments[0]).startswith(f"{run}{os.sep}"):
            copying[0] = False  # the copy changes files itself
            shutil.copytree(run, copies / str(len(os.listdir(copies))))
            copying[0] = True

    run.mkdir()
    copies.mkdir()
    sys.addaudithook(copy)  # stays until the process ends, and so is turned off below
    trained(recipe, run)
    copying[0] = False
    whole = record(run)
    cut_off = list(copies.iterdir())
    assert len(cut_off) > 30
    for folder in cut_off:
        trained(recipe, folder)
        assert record(folder) == whole
        assert contents(folder).keys() == contents(run).keys()


def interrupt_at(trainer, moment, times=1):
    """Let Ctrl-C be pressed while the entry number ``moment`` of the log is written."""
    log, entries = trainer.run.log.append, []

    def log_and_interrupt(entry):
        entries.append(entry)
        log(entry)
        if len(entries) == moment + 1:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)

    trainer.run.log.append = log_and_interrupt


def assert_ends_as_the_whole_one(recipe, folder, whole):
    tiny_trainer(recipe, folder).train()
    assert record(folder) == whole


def assert_ends_without_a_step(recipe, folder, whole):
    trainer = tiny_trainer(recipe, folder)
    trainer.take_step = None
    trainer.train()
    assert record(folder) == whole


def test_ctrl_c_at_any_entry_of_the_log_stops_with_all_saved(recipe, whole, tmp_path):
    """In steps, in the last step of an epoch, in validations; nothing is saved otherwise."""
    recipe = recipe.with_value("save_every", 1000)
    for moment, entry in enumerate(whole[0]):
        folder = tmp_path / str(moment)
        trainer = tiny_trainer(recipe, folder)
        interrupt_at(trainer, moment)
        with pytest.raises(Stopped):
            trainer.train()
        assert trainer.step == entry["step"]
        assert not (folder / "model.npz").exists()
        assert tiny_trainer(recipe, folder).step == entry["step"]
        assert_ends_as_the_whole_one(recipe, folder, whole)


def test_the_time_of_a_run_that_goes_on_is_all_that_it_took(recipe, tmp_path, monkeypatch):
    recipe = recipe.with_value("epochs", 1).with_value("save_every", 1000)
    clock = [1.0]
    monkeypatch.setattr("minitransformer.training.trainer.time.monotonic", lambda: clock[0])

    def of_slow_steps():
        trainer = tiny_trainer(recipe, tmp_path / "run")
        take = trainer.take_step

        def slow(*arguments):
            clock[0] += 10.0
            take(*arguments)
            if trainer.step == 1:
                signal.raise_signal(signal.SIGINT)

        trainer.take_step = slow
        return trainer

    with pytest.raises(Stopped):
        of_slow_steps().train()
    clock[0] += 1e6
    of_slow_steps().train()
    *_, validation = RunFolder(tmp_path / "run").log.entries()
    assert validation["seconds"] == 10.0 * validation["step"]


@pytest.mark.parametrize("moment", ["parameters.average", "run_folder.RunFolder.save_model"])
def test_one_ctrl_c_stops_the_choice_at_the_end(moment, recipe, whole, tmp_path, monkeypatch):
    """Before the mean of the last epochs is validated, and before the model is written."""
    trainer = tiny_trainer(recipe, tmp_path)
    with monkeypatch.context() as patch:
        place = f"minitransformer.runs.{moment}"
        patch.setattr(place, lambda *_, **__: signal.raise_signal(signal.SIGINT))
        with pytest.raises(Stopped):
            trainer.train()
    assert not trainer.run.model.exists()
    checkpoint_path(trainer.run.checkpoints, 1).touch()  # as if it had not come to remove it
    assert_ends_without_a_step(recipe, tmp_path, whole)
    assert len(checkpoints(trainer.run.checkpoints)) == 2


def test_a_ctrl_c_of_the_last_moment_of_the_training_is_not_forgotten(recipe, whole, tmp_path):
    """After the last look at it, while the handler is still that of the training."""
    trainer = tiny_trainer(recipe, tmp_path)
    trained_to_the_end = trainer._trained

    def interrupted_at_the_end():
        if over := trained_to_the_end():
            signal.raise_signal(signal.SIGINT)
        return over

    trainer._trained = interrupted_at_the_end
    with pytest.raises(Stopped):
        trainer.train()
    assert not trainer.run.model.exists()
    assert_ends_as_the_whole_one(recipe, tmp_path, whole)


def test_a_second_ctrl_c_interrupts_at_once(recipe, tmp_path):
    trainer = tiny_trainer(recipe, tmp_path)
    interrupt_at(trainer, 2, times=2)
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    saved = [path.name for path in checkpoints(trainer.run.checkpoints)]
    assert saved == ["step-00000001.npz", "step-00000002.npz"]


def test_a_training_in_another_thread_runs_and_leaves_ctrl_c_alone(recipe, whole, tmp_path):
    thread = threading.Thread(target=trained, args=(recipe, tmp_path))
    thread.start()
    thread.join()
    assert record(tmp_path) == whole


def test_a_damaged_newest_checkpoint_costs_the_steps_since_the_one_before(recipe, whole, tmp_path):
    trained(recipe, tmp_path)
    *_, older, newest = checkpoints(tmp_path / "checkpoints")
    newest.write_bytes(newest.read_bytes()[:-100])
    with pytest.warns(UserWarning, match="passed over"):
        trainer = tiny_trainer(recipe, tmp_path)
    assert older.name == f"step-{trainer.step:08}.npz"
    trainer.train()
    assert record(tmp_path) == whole


def test_a_run_without_a_checkpoint_yet_begins_again(recipe, whole, tmp_path):
    trainer = tiny_trainer(recipe.with_value("save_every", 1000), tmp_path)
    interrupt_at(trainer, 1, times=2)
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    assert len(trainer.run.log.entries()) == 2
    trainer = tiny_trainer(recipe.with_value("save_every", 1000), tmp_path)
    assert (trainer.step, trainer.run.log.entries()) == (0, [])
    trainer.train()
    assert record(tmp_path) == whole
