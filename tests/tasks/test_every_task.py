"""What every task promises; one that is new in the table has its recipe of its own tests."""

import threading
from dataclasses import fields

import digits
import pytest
from tiny_run import recipe_of_task, record, tiny_trainer, trained, trained_in_two

from minitransformer import CPU
from minitransformer.core import twins
from minitransformer.core.libraries import imported
from minitransformer.core.workers import Workers
from minitransformer.parallel import alone
from minitransformer.tasks.task import TASKS, run_at, task_class
from minitransformer.training import loop, session
from minitransformer.training.recipe import Recipe
from minitransformer.training.session import validated

every_task = pytest.mark.parametrize("task", [*TASKS, digits.DigitsConfig.task])


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    digits.known(monkeypatch)


@every_task
def test_a_training_that_was_cut_off_goes_on_bit_for_bit(task, tmp_path):
    recipe = recipe_of_task(task, tmp_path / "corpus")
    trained(recipe, tmp_path / "whole")
    trained_in_two(recipe, tmp_path / "cut", steps=5)
    assert record(tmp_path / "cut") == record(tmp_path / "whole")


@pytest.fixture
def passes(task, monkeypatch):
    """Of each call of a model in a validation: the rows, and whether it is as fast as can be."""
    calls, of_task = [], imported(TASKS[task])
    validate = of_task.validate
    monkeypatch.setattr(alone, "available_cores", lambda: 2)

    def watched(self, model):
        name = "logits" if hasattr(model, "logits") else "forward"
        forward = getattr(type(model), name)

        def noted(self, *inputs, **options):
            in_a_thread = threading.current_thread() is not threading.main_thread()
            calls.append((len(inputs[0]), (twins._awake.get(), in_a_thread)))
            return forward(self, *inputs, **options)

        with monkeypatch.context() as patch:
            patch.setattr(type(model), name, noted)
            return validate(self, model)

    monkeypatch.setattr(of_task, "validate", watched)
    return calls


@every_task
def test_a_validation_is_as_fast_as_a_step_and_passes_each_batch_once(task, tmp_path, passes):
    recipe = recipe_of_task(task, tmp_path / "corpus", shards=7)  # more than some batches have rows
    trainer = trained(recipe, tmp_path / "run")
    batches = trainer.task.validation_batches
    rows = sum(len(getattr(batch, fields(batch)[0].name)) for batch in batches)
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
    trainer = tiny_trainer(recipe_of_task(task, tmp_path / "corpus"), tmp_path / "run")
    asked, share = set(), Workers.map

    def noted(self, *arguments):
        asked.add(self)
        return share(self, *arguments)

    monkeypatch.setattr(Workers, "map", noted)
    trainer.validate()
    assert asked == {trainer.task.workers}


@every_task
def test_a_validation_has_the_same_bits_with_any_number_of_threads(task, tmp_path):
    trainer = tiny_trainer(recipe_of_task(task, tmp_path / "corpus", shards=3), tmp_path / "run")
    found = []
    for threads in (1, 2, 3):
        trainer.task.workers = Workers(3, threads)
        found.append(trainer.validate())
    assert found[0] == found[1] == found[2]


@every_task
def test_a_run_that_notes_no_shards_is_validated_as_it_was_trained(task, tmp_path, monkeypatch):
    """Its batches are not cut."""
    monkeypatch.setattr(session, "default_shards", lambda *_: 0)
    trained(recipe_of_task(task, tmp_path / "corpus", shards=0), tmp_path / "run")
    run = run_at(tmp_path / "run")
    scores, _, _ = validated(run, Recipe.of_run(run), CPU)
    name = task_class(run.load_config()[0]).score.name
    assert scores[name] == pytest.approx(run.load_chosen()[1][f"validation_{name}"])


@every_task
def test_the_loop_that_is_to_be_read_has_the_losses_and_the_model_of_the_trainer(task, tmp_path):
    recipe = recipe_of_task(task, tmp_path / "corpus", shards=1, average=1)
    theirs = trained(recipe, tmp_path / "trained")
    log = [entry for entry in theirs.run.log.entries() if entry["kind"] == "train"]
    ours = tiny_trainer(recipe, tmp_path / "loop")  # its model, as it is at the start
    with ours.workers.one_blas_thread():
        losses = list(loop.train(ours.model, ours.task, ours.config))
    assert losses == [(entry["loss"], entry["nll"]) for entry in log]
    assert ours.model.flat.data.tobytes() == theirs.model.flat.data.tobytes()
