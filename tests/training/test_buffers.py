"""What a model keeps and does not train, a batch norm's statistics, goes through a training."""

import normed
import numpy as np
import pytest
from tiny_run import tiny_trainer, trained, with_scores, with_values
from tiny_tasks import language_modelling

from minitransformer.models.registry import KINDS
from minitransformer.runs.checkpoint.arrays import load_model_arrays, model_arrays
from minitransformer.runs.checkpoint.file import CheckpointError, load_checkpoint
from minitransformer.runs.run_folder import RunFolder
from minitransformer.training.step import TrainingStep
from minitransformer.training.watch import TrainingError

NAMES = ["buffers/batch_norm.mean", "buffers/batch_norm.variance", "buffers/steps"]


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    monkeypatch.setitem(KINDS, normed.KIND, normed.PLACE)


@pytest.fixture
def recipe(tmp_path_factory):
    recipe = language_modelling(tmp_path_factory.mktemp("corpus"), shards=4)
    return recipe.with_value("kind", normed.KIND)


def buffers(model):
    return {path: buffer.data.copy() for path, buffer in model.named_buffers()}


def assert_equal(some, others):
    assert some.keys() == others.keys()
    for name, array in some.items():
        np.testing.assert_array_equal(array, others[name], strict=True)


def test_the_copies_of_the_shards_become_one_as_their_owner_says(recipe, tmp_path):
    recipe = with_values(recipe, accelerate=False, dropout=0.0)
    trainer = tiny_trainer(recipe, tmp_path)
    batch, *_ = trainer.task.batches(0)
    before = buffers(trainer.model)
    alone = []
    for part in batch.split(4):
        model = tiny_trainer(recipe, tmp_path).model
        model.loss(part, np.random.default_rng(0))
        alone.append(buffers(model))
    trainer.take_step([batch], 100)
    after, model_mean = buffers(trainer.model), trainer.model.batch_norm.mean.data
    assert (before["steps"], after["steps"]) == (0, 4)
    for name in ("batch_norm.mean", "batch_norm.variance"):
        assert (after[name] != before[name]).any()
        mean = sum(copies[name] for copies in alone) / 4
        np.testing.assert_array_equal(after[name], mean)
    for replica in trainer.stepper.replicas[1:]:
        assert not np.shares_memory(replica.batch_norm.mean.data, model_mean)


def test_a_shard_without_a_part_in_the_step_changes_nothing(recipe, tmp_path):
    recipe = with_values(recipe, accelerate=False, dropout=0.0)
    trainer, alone = (tiny_trainer(recipe, tmp_path) for _ in range(2))
    batch, *_ = trainer.task.batches(0)
    row, *_ = batch.split(len(batch.ids))
    alone.model.loss(row, np.random.default_rng(0))
    trainer.take_step([row], 100)
    assert_equal(buffers(trainer.model), buffers(alone.model))


def test_a_trained_model_has_them(recipe, tmp_path):
    trainer = trained(recipe.with_value("average", 1), tmp_path)
    arrays, _ = RunFolder(tmp_path).load_chosen()
    assert [name for name in arrays if name.startswith("buffers/")] == NAMES
    model, *_ = RunFolder(tmp_path).load_trained("cpu")
    assert_equal(buffers(model), buffers(trainer.model))
    assert model.steps.data > 0
    ids = np.array([[4, 5, 6]])
    np.testing.assert_array_equal(model.forward(ids)[0], trainer.model.forward(ids)[0])


def test_the_mean_of_epochs_has_the_mean_of_floats_and_the_last_of_others(recipe, tmp_path):
    trainer = tiny_trainer(recipe, tmp_path)
    with_scores(trainer, 9.0, 8.0, 7.0, 6.0).train()
    of_epochs = [load_checkpoint(trainer.run.epoch_file(epoch))[0] for epoch in (2, 3)]
    chosen, state = load_checkpoint(trainer.run.model)
    assert state["origin"] == "mean of epochs 2 to 3"
    mean, variance, steps = NAMES
    for name in (mean, variance):
        both = [arrays[name].astype(np.float64) for arrays in of_epochs]
        np.testing.assert_array_equal(chosen[name], (sum(both) / 2).astype(np.float32))
    assert of_epochs[0][steps] < of_epochs[1][steps] == chosen[steps]


def test_those_of_another_model_are_refused_by_their_names(recipe, tmp_path):
    model = tiny_trainer(recipe, tmp_path).model
    arrays = model_arrays(model) | {"buffers/count": np.ones(1)}
    del arrays[NAMES[0]]
    with pytest.raises(CheckpointError, match=f"missing: {NAMES[0]}; unexpected: buffers/count;"):
        load_model_arrays(model, arrays)


def test_a_buffer_that_is_not_finite_is_never_saved(recipe, tmp_path):
    trainer = tiny_trainer(recipe, tmp_path)
    take = TrainingStep.take

    def take_and_poison(*arguments):
        take(trainer.stepper, *arguments)
        trainer.model.batch_norm.variance.data[3] = np.inf

    trainer.stepper.take = take_and_poison
    with pytest.raises(TrainingError, match=r"batch_norm\.variance is NaN or infinite at step 1"):
        trainer.train()
