"""What every task promises; one that is new in the table wants a recipe here."""

import threading

import pytest
import test_language_modelling
import test_masked_language_modelling
import test_tagging
from tiny_run import record, tiny_recipe, tiny_trainer, trained, trained_in_two

from minitransformer import CPU
from minitransformer.core import twins
from minitransformer.core.workers import Workers
from minitransformer.models.token_model import TokenModel
from minitransformer.parallel import alone
from minitransformer.tasks.task import TASKS, run_at, task_class
from minitransformer.training import loop, session
from minitransformer.training.recipe import Recipe
from minitransformer.training.session import validated

RECIPES = {
    "translation": tiny_recipe,
    "language modelling": test_language_modelling.recipe_for,
    "masked language modelling": test_masked_language_modelling.recipe_for,
    "tagging": test_tagging.recipe_for,
}


every_task = pytest.mark.parametrize("task", TASKS)


@every_task
def test_a_training_that_was_cut_off_goes_on_bit_for_bit(task, tmp_path):
    recipe = RECIPES[task](tmp_path / "corpus")
    trained(recipe, tmp_path / "whole")
    trained_in_two(recipe, tmp_path / "cut", steps=5)
    assert record(tmp_path / "cut") == record(tmp_path / "whole")


@pytest.fixture
def passes(monkeypatch):
    """Of each call of a model's ``logits``: the rows, and whether it is as fast as can be."""
    calls, logits = [], TokenModel.logits
    monkeypatch.setattr(alone, "available_cores", lambda: 2)

    def noted(self, *ids, rng=None):
        in_a_thread = threading.current_thread() is not threading.main_thread()
        calls.append((len(ids[0]), (twins._awake.get(), in_a_thread)))
        return logits(self, *ids, rng=rng)

    monkeypatch.setattr(TokenModel, "logits", noted)
    return calls


@every_task
def test_a_validation_is_as_fast_as_a_step_and_passes_each_batch_once(task, tmp_path, passes):
    recipe = RECIPES[task](tmp_path / "corpus", shards=7)  # more than some batches have rows
    trainer = trained(recipe, tmp_path / "run")
    rows = sum(len(batch.labels) for batch in trainer.task.validation_batches)
    validations = trainer.config.epochs + 1  # and of the mean
    assert sum(count for count, _ in passes) == validations * rows
    assert all(count for count, _ in passes)
    assert {fast for _, fast in passes} == {(True, True)}
    passes.clear()
    validated(run_at(tmp_path / "run"), recipe, CPU)
    assert sum(count for count, _ in passes) == rows


@every_task
def test_all_of_a_validation_is_shared_by_the_workers_of_the_task(task, tmp_path, monkeypatch):
    """Those of several processes, too."""
    trainer = tiny_trainer(RECIPES[task](tmp_path / "corpus"), tmp_path / "run")
    asked, share = set(), Workers.map

    def noted(self, *arguments):
        asked.add(self)
        return share(self, *arguments)

    monkeypatch.setattr(Workers, "map", noted)
    trainer.validate()
    assert asked == {trainer.task.workers}


@every_task
def test_a_validation_has_the_same_bits_with_any_number_of_threads(task, tmp_path):
    trainer = tiny_trainer(RECIPES[task](tmp_path / "corpus", shards=3), tmp_path / "run")
    found = []
    for threads in (1, 2, 3):
        trainer.task.workers = Workers(3, threads)
        found.append(trainer.validate())
    assert found[0] == found[1] == found[2]


@every_task
def test_a_run_that_notes_no_shards_is_validated_as_it_was_trained(task, tmp_path, monkeypatch):
    """Its batches are not cut."""
    monkeypatch.setattr(session, "default_shards", lambda *_: 0)
    trained(RECIPES[task](tmp_path / "corpus", shards=0), tmp_path / "run")
    run = run_at(tmp_path / "run")
    scores, _, _ = validated(run, Recipe.of_run(run), CPU)
    name = task_class(run.load_config()[0]).score.name
    assert scores[name] == pytest.approx(run.load_chosen()[1][f"validation_{name}"])


@every_task
def test_the_loop_that_is_to_be_read_has_the_losses_and_the_model_of_the_trainer(task, tmp_path):
    recipe = RECIPES[task](tmp_path / "corpus", shards=1, average=1)
    theirs = trained(recipe, tmp_path / "trained")
    log = [entry for entry in theirs.run.log.entries() if entry["kind"] == "train"]
    ours = tiny_trainer(recipe, tmp_path / "loop")  # its model, as it is at the start
    with ours.workers.one_blas_thread():
        losses = list(loop.train(ours.model, ours.task, ours.config))
    assert losses == [(entry["loss"], entry["nll"]) for entry in log]
    assert ours.model.flat.data.tobytes() == theirs.model.flat.data.tobytes()
