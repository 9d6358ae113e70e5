import io
import math
import re
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from on_device import STAND_IN
from strict_cupy import strict
from tiny_run import record, tiny_trainer, trained, with_scores, with_values

from minitransformer import Transformer, TransformerConfig
from minitransformer.core import twins
from minitransformer.data.text.batches import make_batches
from minitransformer.parallel import alone
from minitransformer.runs.checkpoint.arrays import average as average_of
from minitransformer.runs.checkpoint.file import load_checkpoint
from minitransformer.runs.checkpoint.folder import checkpoints
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.task import Score
from minitransformer.tasks.translation import Translation
from minitransformer.training import trainer as trainer_module
from minitransformer.training.config import TrainingConfig
from minitransformer.training.progress import Progress
from minitransformer.training.step import step_seed
from minitransformer.training.trainer import Trainer
from minitransformer.training.watch import TrainingError

RNG = np.random.default_rng(0)
V = 30
PAIRS = [tuple(RNG.integers(4, V, RNG.integers(2, 9)).tolist() for _ in "st") for _ in range(12)]


def double_trainer(folder, dropout=0.0, device="cpu", **fields):
    """A Trainer in double precision that takes steps and nothing else."""
    sizes = dict(d_model=8, num_heads=2, d_ff=16, max_length=10)
    config = TransformerConfig.preset("toy", V, dropout=dropout, **sizes)
    run = RunFolder(folder)
    run.create()
    model = Transformer(config, dtype=np.float64, device=device)
    fields = dict(log_every=1000, clip_norm=0.0) | fields
    task = Translation.__new__(Translation)  # of whose data a step asks nothing
    return Trainer(model, TrainingConfig(**fields), run, task, Progress(io.StringIO()))


# The step


def test_accumulated_batches_have_the_losses_and_the_gradient_of_one_large_batch(tmp_path):
    entries, gradients = [], []
    for max_tokens in (1000, 60):
        batches = make_batches(PAIRS, max_tokens)
        trainer = double_trainer(tmp_path / str(max_tokens))
        trainer.take_step(batches, 100)
        entries += trainer.run.log.entries()
        gradients.append(trainer.model.flat.grad)
    assert len(batches) > 3
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-9, atol=1e-14)
    whole, parts = entries
    assert math.isclose(whole["gradient_norm"], np.linalg.norm(gradients[0]), rel_tol=1e-12)
    for name in ("loss", "nll", "gradient_norm"):
        assert math.isclose(whole[name], parts[name], rel_tol=1e-12)
    assert whole["loss"] != whole["nll"]


@pytest.mark.parametrize("clip_norm", [0.25, 0.0])
def test_the_gradient_that_updates_is_the_clipped_one_or_the_whole_without(tmp_path, clip_norm):
    trainer = double_trainer(tmp_path, clip_norm=clip_norm)
    step = trainer.optimizer.step
    scales = []
    trainer.optimizer.step = lambda rate, scale, workers: (scales.append(scale), step(rate, scale))
    trainer.take_step(make_batches(PAIRS, 1000), 100)
    norm = np.linalg.norm(trainer.model.flat.grad)
    assert math.isclose(scales[0] * norm, clip_norm or norm, rel_tol=1e-12)
    assert trainer.run.log.entries()[0]["gradient_norm"] > 0.25


@pytest.mark.parametrize("schedule", ["linear", "inverse-sqrt", "noam"])
def test_each_step_is_taken_with_its_learning_rate_of_the_schedule(tmp_path, schedule):
    trainer = double_trainer(tmp_path, schedule=schedule, warmup_steps=2, log_every=1)
    rates = []
    trainer.optimizer.step = lambda rate, *_: rates.append(rate)
    for _ in range(4):
        trainer.take_step(make_batches(PAIRS, 1000), total_steps=4)
    config = trainer.model.config
    assert rates == [trainer.config.learning_rate(step, 4, config) for step in (1, 2, 3, 4)]
    assert [entry["learning_rate"] for entry in trainer.run.log.entries()] == rates


def test_steps_draw_different_dropout_masks_and_the_same_ones_again(tmp_path):
    batches = make_batches(PAIRS, 1000)

    def losses():
        trainer = double_trainer(tmp_path, dropout=0.5, log_every=1)
        trainer.optimizer.step = lambda *_: None
        trainer.run.log.path.unlink(missing_ok=True)
        for _ in range(3):
            trainer.take_step(batches, 100)
        return [entry["loss"] for entry in trainer.run.log.entries()]

    first = losses()
    assert len(set(first)) == 3
    assert losses() == first


def test_each_seed_and_worker_draws_dropout_of_its_own_in_each_step():
    of_seeds = {step_seed(seed, step) for seed in range(30) for step in range(1, 100)}
    assert len(of_seeds) == 30 * 99
    of_workers = {step_seed(0, step, worker) for step in range(1, 100) for worker in range(8)}
    assert len(of_workers) == 99 * 8


def test_only_some_steps_are_logged_and_their_speed_is_that_of_all_since(tmp_path, monkeypatch):
    trainer = double_trainer(tmp_path, log_every=4)
    clock = chain.from_iterable((0, step) for step in range(1, 10))  # step n takes n seconds
    monkeypatch.setattr(trainer_module.time, "perf_counter", lambda: next(clock))
    batches = make_batches(PAIRS, 1000)
    for _ in range(9):
        trainer.take_step(batches, 100)
    entries = trainer.run.log.entries()
    assert [entry["step"] for entry in entries] == [1, 4, 8]
    steps_per_second = [1 / 1, 3 / (2 + 3 + 4), 4 / (5 + 6 + 7 + 8)]
    speeds = [entry["tokens_per_second"] / batches[0].num_tokens for entry in entries]
    np.testing.assert_allclose(speeds, steps_per_second)


@pytest.mark.parametrize("consistency", [0.0, 5.0])
def test_only_a_step_that_is_logged_waits_for_the_device(tmp_path, consistency):
    fields = dict(dropout=0.1, clip_norm=1.0, consistency=consistency)
    trainer = double_trainer(tmp_path, device=STAND_IN, **fields)
    batches = make_batches(PAIRS, 60)
    trainer.take_step(batches, 100)
    with strict.record() as record:
        trainer.take_step(batches, 100)
    assert record.waits == 0
    assert len(trainer.run.log.entries()) == 1
    trainer.save()
    resumed = double_trainer(tmp_path, device=STAND_IN, **fields)
    assert resumed.resume()
    for one in (trainer, resumed):
        one.config = replace(one.config, log_every=1)
        one.take_step(batches, 100)
    *_, entry, again = trainer.run.log.entries()
    assert entry["loss"] == again["loss"]


# Shards, each worked on by a thread


BATCHES = make_batches(PAIRS, 60)[::-1]  # from long pairs, few in a batch, to short ones


def steps(folder, shards, **fields):
    """The trainer after three steps on the same batches, and its log."""
    trainer = double_trainer(folder / str(shards), shards=shards, log_every=1, **fields)
    trainer.run.log.path.unlink(missing_ok=True)
    for _ in range(3):
        trainer.take_step(BATCHES, 100)
    return trainer, trainer.run.log.entries()


@pytest.mark.parametrize("consistency", [0.0, 2.0])
@pytest.mark.parametrize("shards", [2, 7])
def test_shards_change_nothing_but_the_order_of_sums(tmp_path, shards, consistency):
    """Without dropout, whose masks they draw each for itself. The first batch is one pair alone."""
    assert len(BATCHES[0].source) == 1
    fields = dict(clip_norm=0.25, consistency=consistency)
    one, expected = steps(tmp_path, 1, **fields)
    several, entries = steps(tmp_path, shards, **fields)
    for entry, values in zip(entries, expected, strict=True):
        for name in ("loss", "nll", "gradient_norm"):
            assert math.isclose(entry[name], values[name], rel_tol=1e-12), name
    found, gradient = several.model.flat.grad, one.model.flat.grad
    np.testing.assert_allclose(found, gradient, rtol=0, atol=1e-12 * np.linalg.norm(gradient))


@pytest.mark.parametrize("consistency", [0.0, 2.0])
@pytest.mark.parametrize("shards", [1, 3])
def test_a_training_on_threads_repeats_itself_bit_for_bit(tmp_path, shards, consistency):
    fields = dict(dropout=0.3, consistency=consistency)
    first, again = (steps(tmp_path, shards, **fields)[0] for _ in range(2))
    assert first.model.flat.data.tobytes() == again.model.flat.data.tobytes()
    assert first.optimizer.vectors["v"].tobytes() == again.optimizer.vectors["v"].tobytes()


def test_an_error_in_a_worker_comes_out_of_the_step_and_changes_no_parameter(tmp_path):
    trainer = double_trainer(tmp_path, shards=3)
    before = trainer.model.flat.data.copy()

    def fail(*_):
        raise MemoryError("in a worker")

    trainer.stepper.replicas[2].loss_backward = fail
    with pytest.raises(MemoryError, match="in a worker"):
        trainer.take_step(make_batches(PAIRS, 1000), 100)
    np.testing.assert_array_equal(trainer.model.flat.data, before)


@pytest.mark.parametrize("accelerate", [True, False])
def test_twins_are_awake_in_every_worker_if_the_recipe_says_so(tmp_path, accelerate):
    trainer = double_trainer(tmp_path, shards=3, accelerate=accelerate)
    seen = []
    for replica in trainer.stepper.replicas:
        loss = replica.loss
        replica.loss = lambda *a, loss=loss, **k: seen.append(twins._awake.get()) or loss(*a, **k)
    trainer.take_step(make_batches(PAIRS, 1000), 100)
    assert seen == [accelerate] * 3


# Two passes


def test_without_dropout_a_second_pass_changes_nothing(tmp_path):
    (one, alone), (two, entries) = (
        steps(tmp_path / str(kappa), 1, consistency=kappa) for kappa in (0.0, 2.0)
    )
    assert [e["loss"] for e in entries] == pytest.approx([e["loss"] for e in alone], rel=1e-12)
    np.testing.assert_allclose(two.model.flat.data, one.model.flat.data, rtol=1e-9, atol=1e-12)


def test_two_passes_have_different_dropout_and_their_distance_is_in_the_loss(tmp_path):
    trainer = double_trainer(tmp_path, dropout=0.3, consistency=2.0, label_smoothing=0.0)
    batches = make_batches(PAIRS, 100)
    assert len(batches) > 1
    outputs = []
    model = trainer.model
    features = model.features
    model.features = lambda *a: outputs.append(features(*a)) or outputs[-1]
    trainer.optimizer.step = lambda *_: None
    trainer.take_step(batches, 100)

    distances, nlls = [], []  # of all tokens of the step
    for batch, (y, _) in zip(batches, outputs, strict=True):
        logits, _ = model.output_projection.forward(y)
        p, q = (np.exp(z) / np.exp(z).sum(-1, keepdims=True) for z in np.split(logits, 2))
        real = batch.labels != 0
        distances += list((p * np.log(p / q) + q * np.log(q / p)).sum(-1)[real] / 2)
        for x in (p, q):
            right = np.take_along_axis(x, batch.labels[..., None], -1)[..., 0]
            nlls += list(-np.log(right[real]))
    distance, nll = np.mean(distances), np.mean(nlls)
    assert distance > 0.001
    entry = trainer.run.log.entries()[0]
    assert math.isclose(entry["nll"], nll, rel_tol=1e-12)
    assert math.isclose(entry["loss"], nll + 2.0 * distance, rel_tol=1e-12)


# A training that is lost


def poison_after(trainer, step):
    """Let a parameter be NaN once that step is done."""
    take_step = trainer.take_step

    def take_step_and_poison(*arguments):
        take_step(*arguments)
        if trainer.step == step:
            trainer.model.flat.data[3] = np.nan

    trainer.take_step = take_step_and_poison


def everything_finite(folder):
    files = list(folder.rglob("*.npz"))
    return all(np.isfinite(a).all() for file in files for a in load_checkpoint(file)[0].values())


def test_a_nan_stops_the_training_and_names_step_batch_and_last_good_checkpoint(recipe, tmp_path):
    trainer = tiny_trainer(recipe.with_value("save_every", 3), tmp_path)
    poison_after(trainer, 4)
    with pytest.raises(TrainingError) as caught:
        trainer.train()
    assert str(caught.value).startswith(
        "the loss is nan, the norm of its gradient nan, at step 5, epoch 2, batch 4; "
        f"the last good checkpoint is {tmp_path / 'checkpoints' / 'step-00000003.npz'}. "
    )
    assert everything_finite(tmp_path)


@pytest.mark.parametrize("save_every", [1, 2, 1000])
def test_a_nan_in_a_step_that_is_not_logged_is_never_saved(recipe, tmp_path, save_every):
    """A step that saves nothing does not look, so as not to wait for a GPU; a save does."""
    recipe = recipe.with_value("log_every", 1000).with_value("save_every", save_every)
    trainer = tiny_trainer(recipe, tmp_path)
    poison_after(trainer, 1)
    validated = []
    trainer.task.validate = validated.append
    with pytest.raises(TrainingError, match=r"every 1000 steps are looked at.*step-00000000\.npz"):
        trainer.train()
    assert [path.name for path in tmp_path.rglob("*.npz")] == ["step-00000000.npz"]
    assert everything_finite(tmp_path)
    assert not validated


def test_a_parameter_that_became_infinite_in_the_last_step_is_not_saved(recipe, tmp_path):
    trainer = tiny_trainer(recipe, tmp_path)
    step, rates = trainer.optimizer.step, {2: math.inf}
    trainer.optimizer.step = lambda rate, *more: step(rates.get(trainer.step, rate), *more)
    with pytest.raises(TrainingError, match="a parameter is NaN or infinite at step 2, epoch 1"):
        trainer.train()
    assert everything_finite(tmp_path)
    saved = [path.name for path in checkpoints(tmp_path / "checkpoints")]
    assert saved == ["step-00000000.npz", "step-00000001.npz"]


@pytest.mark.parametrize(
    ("clip_norm", "advice"), [(1.0, "a smaller clip_norm"), (0.0, "a clip_norm, such as 1")]
)
@pytest.mark.parametrize("log_every", [1, 1000])
def test_a_huge_learning_rate_brings_a_loss_that_stops_the_training(
    log_every, clip_norm, advice, recipe, tmp_path
):
    fields = dict(log_every=log_every, clip_norm=clip_norm, peak_learning_rate=100.0)
    told = rf"the loss is \d+\.?\d*, .* at step 2, .*lower peak_learning_rate, .* or {advice}$"
    with pytest.raises(TrainingError, match=told):
        trained(with_values(recipe, **fields), tmp_path)


def test_a_gradient_too_large_to_measure_stops_the_training(recipe, tmp_path, monkeypatch):
    """Clipping would make it zero, and the training would stand still without a word."""
    monkeypatch.setattr(alone, "gradient_norm", lambda *_: np.float32(np.inf))
    with pytest.raises(TrainingError, match="the norm of its gradient inf, at step 1"):
        trained(recipe, tmp_path)


# Epochs, and what is chosen in the end


def epochs_kept(trainer):
    return sorted(path.name for path in trainer.run.epochs.iterdir())


def test_the_best_epoch_and_those_that_a_mean_needs_are_kept(recipe, tmp_path):
    """The mean at the end, and that of who has to go back to the checkpoint before the last."""
    recipe = recipe.with_value("epochs", 6)
    trainer = with_scores(tiny_trainer(recipe, tmp_path), 1, 9, 2, 3, 4, 5, 0)
    trainer.train()
    assert epochs_kept(trainer) == [f"epoch-000{epoch}.npz" for epoch in (2, 4, 5, 6)]


@pytest.mark.parametrize(("average", "scores", "origin", "score"), [
    (2, (1.0, 3.0, 2.0, 3.5), "mean of epochs 2 to 3", 3.5),  # that of the mean comes last
    (2, (3.0, 3.0, 2.0, 3.0), "epoch 1", 3.0),
    (1, (1.0, 3.0, 2.0), "epoch 2", 3.0),
])  # fmt: skip
def test_what_scores_best_is_chosen(recipe, tmp_path, average, scores, origin, score):
    trainer = with_scores(tiny_trainer(recipe.with_value("average", average), tmp_path), *scores)
    trainer.train()
    arrays, state = load_checkpoint(trainer.run.model)
    assert (state["origin"], state["validation_bleu"]) == (origin, score)
    of_epochs = [trainer.run.epoch_file(int(n)) for n in re.findall(r"\d", origin)]
    expected = average_of(of_epochs) if len(of_epochs) > 1 else load_checkpoint(of_epochs[0])[0]
    assert arrays.keys() == expected.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, expected[name])
    for path, parameter in trainer.model.named_parameters():
        np.testing.assert_array_equal(parameter.data, arrays[f"parameters/{path}"])
    said = trainer.progress.stream.getvalue()
    assert f"chosen by validation BLEU, {score}: {origin}" in said


def test_where_less_is_better_the_lowest_is_chosen(recipe, tmp_path):
    trainer = tiny_trainer(recipe.with_value("average", 1), tmp_path)
    trainer.task.score = Score("nll", "NLL", more_is_better=False, digits=3)
    with_scores(trainer, 3.0, 1.25, 2.0).train()
    assert trainer.best == {"nll": 1.25, "epoch": 2}
    assert load_checkpoint(trainer.run.model)[1]["validation_nll"] == 1.25
    said = trainer.progress.stream.getvalue()
    assert "epoch 3: validation NLL 2.000, best in epoch 2" in said
    assert "chosen by validation NLL, 1.250: epoch 2" in said
    assert trainer.resume()


def test_patience_ends_after_that_many_epochs_without_a_better_score(recipe, tmp_path):
    """And if it is resumed the run does not train on."""
    recipe = with_values(recipe, epochs=9, patience=2)
    trainer = with_scores(tiny_trainer(recipe, tmp_path), 1, 0, 2, 2, 1, 0)
    trainer.train()
    assert trainer.epoch == 5
    assert trainer.best == {"bleu": 2, "epoch": 3}
    before = record(tmp_path)
    with_scores(tiny_trainer(recipe, tmp_path), 0).train()
    assert record(tmp_path) == before


def test_the_last_step_of_the_schedule_is_the_last_step_of_the_training(recipe, tmp_path):
    """Three batches in two steps an epoch, as two are accumulated."""
    trainer = tiny_trainer(recipe, tmp_path)
    batches = make_batches(PAIRS, 90)
    assert len(batches) == 3
    trainer.task.batches = lambda epoch: batches
    trainer.train()
    entries = [e for e in trainer.run.log.entries() if e["kind"] == "train"]
    assert [e["step"] for e in entries] == [1, 2, 3, 4, 5, 6]
    assert [e["epoch"] for e in entries] == [0, 0, 1, 1, 2, 2]
    assert entries[-1]["learning_rate"] == 0
    assert entries[-2]["learning_rate"] > 0
