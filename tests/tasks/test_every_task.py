"""What every task promises; one that is new in the table wants a recipe in ``kit/tiny_tasks.py``.

And trainings of every kind of model, with what it keeps beside its parameters.
"""

import io
import math
import threading
from dataclasses import fields
from itertools import pairwise

import digits
import kinds
import normed
import numpy as np
import pytest
from tiny_run import record, tiny_trainer, trained, trained_in_two
from tiny_tasks import WHOLE, recipe_of_kind, recipe_of_task

from minitransformer import CPU
from minitransformer.core import twins
from minitransformer.core.errors import InputError
from minitransformer.core.libraries import imported
from minitransformer.core.workers import Workers
from minitransformer.data.text.corpus import CorpusError
from minitransformer.data.text.vocabulary import VocabularyError
from minitransformer.models.registry import KINDS, config_class
from minitransformer.parallel import alone
from minitransformer.runs.checkpoint.arrays import model_arrays
from minitransformer.tasks.task import TASKS, run_at, task_class
from minitransformer.training import loop, session
from minitransformer.training.progress import Progress
from minitransformer.training.recipe import Recipe, RecipeError
from minitransformer.training.session import validated

LANGUAGE, MASKED, TAGGING = "language modelling", "masked language modelling", "tagging"
PICTURES = "classification"
DIGITS = digits.DigitsConfig.task
every_task = pytest.mark.parametrize("task", [*TASKS, DIGITS])
EVERY_KIND = [*KINDS, digits.DigitsConfig.kind, kinds.BAG, normed.KIND]


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    digits.known(monkeypatch)
    kinds.known(monkeypatch)
    monkeypatch.setitem(KINDS, normed.KIND, normed.PLACE)


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_training_that_was_cut_off_goes_on_bit_for_bit(kind, tmp_path):
    recipe = recipe_of_kind(kind, tmp_path / "corpus")
    trained(recipe, tmp_path / "whole")
    trained_in_two(recipe, tmp_path / "cut", steps=5)
    assert record(tmp_path / "cut") == record(tmp_path / "whole")


OTHERWISE = dict(optimizer="sgd", momentum=0.9, clip_norm=0.3, schedule="plateau")
OTHERWISE |= dict(plateau_epochs=1)


@pytest.mark.parametrize(("kind", "changes"), [
    *((kind, {}) for kind in EVERY_KIND),
    ("transformer", OTHERWISE | dict(peak_learning_rate=1e-4)),  # validations stand still
])  # fmt: skip
def test_the_loop_to_be_read_has_the_losses_and_the_model_of_the_trainer(kind, changes, tmp_path):
    recipe = recipe_of_kind(kind, tmp_path / "corpus", shards=1, average=1, **changes)
    theirs = trained(recipe, tmp_path / "trained")
    log = [entry for entry in theirs.run.log.entries() if entry["kind"] == "train"]
    ours = tiny_trainer(recipe, tmp_path / "loop")  # its model, as it is at the start
    with ours.workers.one_blas_thread():
        losses = list(loop.train(ours.model, ours.task, ours.config))
    assert losses == [(entry["loss"], entry["nll"]) for entry in log]
    arrays, expected = model_arrays(ours.model), model_arrays(theirs.model)
    assert arrays.keys() == expected.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, expected[name], strict=True)


@pytest.mark.parametrize(("task", "changes"), [
    (LANGUAGE, dict(epochs=8)),
    (MASKED, dict(epochs=12)),
    (TAGGING, dict(epochs=20)),
    (TAGGING, dict(epochs=20, content=WHOLE)),
    (PICTURES, dict(epochs=10)),
    (DIGITS, dict(epochs=8)),
])  # fmt: skip
def test_a_training_learns_and_chooses_the_epoch_of_the_best_score(task, changes, tmp_path):
    recipe = recipe_of_task(task, tmp_path / "corpus", save_every=1000, **changes)
    trainer = trained(recipe, tmp_path / "run")
    score = trainer.task.score
    entries = [e for e in trainer.run.log.entries() if e["kind"] == "validation"]
    scores = [entry[score.name] for entry in entries]
    if score.more_is_better:
        assert scores[-1] > 0.9 > scores[0]
    else:
        assert scores[-1] < 0.6 * scores[0]
    assert entries[-1]["nll"] < 0.9 * entries[0]["nll"]
    assert trainer.best[score.name] == (max if score.more_is_better else min)(scores)


@every_task
def test_a_model_that_gives_all_answers_alike_has_the_loss_of_guessing(task, tmp_path):
    """A training beyond hope has one that is some times as large."""
    trainer = tiny_trainer(recipe_of_task(task, tmp_path / "corpus"), tmp_path / "run")
    trainer.model.flat.data[:] = 0
    logits, _ = trainer.model.logits(*trainer.model.inputs(next(iter(trainer.task.batches(0)))))
    guessing = math.log(logits.shape[-1])
    scores = trainer.task.validate(trainer.model)
    assert scores["nll"] == pytest.approx(guessing)
    if "perplexity" in scores:
        assert scores["perplexity"] == pytest.approx(logits.shape[-1])
    # Six pictures of three classes have cost 11.4 in a training that then got all of them right.
    assert max(guessing, 12) < trainer.task.hopeless(trainer.model) < max(10 * guessing, 20)


OF_A_RECIPE = [
    *((task, changes, words) for task in (LANGUAGE, MASKED) for changes, words in (
        (dict(text=""), "corpus='text' needs text: --text FILE"),
        (dict(corpus="toy"), "text.txt' is for corpus='text', and here it is 'toy'"),
        (dict(languages="fr-en"), "leave out languages"),
        (dict(batch_tokens=11), "max_length=12 tokens, and a batch has batch_tokens"),
    )),
    *((task, dict(max_length=2), "max_length=2 leaves no room .*; choose 3 or more")
      for task in (MASKED, TAGGING)),
    *((task, dict(subword_dropout=0.1), "subword_dropout is for translation; leave it out")
      for task in (LANGUAGE, MASKED, TAGGING, PICTURES, DIGITS)),
    (DIGITS, dict(consistency=1.0), "consistency is for translation, language modelling, masked"),
    *((PICTURES, changes, words) for changes, words in (
        (dict(pictures=""), "corpus='npz' needs pictures: --pictures FILE"),
        (dict(corpus="folder", pictures=""), "'folder' needs pictures: --pictures FOLDER"),
        (dict(corpus="shapes"), "pictures=.* is for corpus='folder' or 'npz', and here it is 's"),
        (dict(picture_size=64), "picture_size=64 is for corpus='folder', and here it is 'npz'; le"),
        (dict(held_out=0.6), "held_out=0.6 must be 0.5 at most"),
        (dict(mirror=1), "mirror=1 must be True or False"),
    )),
    (MASKED, dict(unit="characters"), "a masked language model takes subwords"),
    (MASKED, dict(context=8), "context is for language models; a masked one sees sentences"),
    *((TAGGING, changes, words) for changes, words in (
        (dict(labelled=""), "corpus='labelled' needs labelled: --labelled FILE"),
        (dict(corpus="multi30k"), "corpus='multi30k'; choose 'toy' or 'labelled'"),
        (dict(corpus="toy"), "labelled=.* is for corpus='labelled'"),
        (dict(labels="case"), "labels='case' is for corpus='toy', and here it is 'labelled'; leav"),
        (dict(batch_tokens=19), "max_length=20 tokens, and a batch has batch_tokens"),
        *((dict(labelled_share=share), "labelled_share=.* must be (> 0|1 at most)")
          for share in (0.0, -0.5, 1.5, float("nan"))),
    )),
    *((task, dict(train_share=share), "train_share=.* must be (> 0|1 at most)")
      for task in ("translation", PICTURES) for share in (0.0, 1.5)),
    ("translation", dict(batch_tokens=39), "raise batch_tokens to 40 or lower max_tokens to 19"),
    *(("translation", {f"validation_{side}": ""}, f"corpus='files' needs validation_{side}: --val")
      for side in ("source", "target")),
]  # fmt: skip
OF_A_CORPUS = [
    *((task, dict(content=content), f"too little text: none to {purpose}")
      for task in (LANGUAGE, MASKED)
      for content, purpose in (
          ("", "train on"), ("\n" * 30, "train on"), ("a line\n", "validate with"))),
    *((TAGGING, dict(content=content), "has [01] sentences; give more")
      for content in ("", "N\tdogs run\n")),
    ("translation", dict(max_tokens=2), "no training pair is short enough; raise max_tokens"),
    ("translation", dict(validation=""), "no validation pairs"),
    ("translation", dict(validation="bao " * 30), "pair is short enough; raise max_tokens"),
]  # fmt: skip
REFUSED = [
    *((RecipeError, *row) for row in OF_A_RECIPE), *((CorpusError, *row) for row in OF_A_CORPUS),
    (InputError, "translation", dict(num_heads=3), "d_model=8 is not divisible by num_heads=3"),
    (InputError, DIGITS, dict(schedule="noam"), "takes the peak from d_model, which this model"),
    (InputError, "translation", dict(optimizer="sgd", nesterov=True),
     "nesterov=True does nothing without momentum"),
    (InputError, TAGGING, dict(corpus="toy", labelled="", labels="gender"),
     "labels='gender'; choose 'part-of-speech'"),
    *((VocabularyError, "translation", dict(vocabulary_size=size), words)
      for size, words in ((4000, "no more than"), (9, "these texts need .* pieces or more"))),
]  # fmt: skip


@pytest.mark.parametrize(("error", "task", "changes", "words"), REFUSED, ids=ascii)
def test_what_cannot_be_trained_makes_no_run(error, task, changes, words, tmp_path):
    with pytest.raises(error, match=words):
        tiny_trainer(recipe_of_task(task, tmp_path / "corpus", **changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def contents(batches):
    return [[x.tobytes() for x in vars(batch).values() if hasattr(x, "dtype")] for batch in batches]


@every_task
def test_each_epoch_and_each_seed_has_batches_of_its_own_and_always_the_same(task, tmp_path):
    one, other = (
        tiny_trainer(recipe_of_task(task, tmp_path / "corpus", seed=s), tmp_path / str(s)).task
        for s in (0, 1)
    )
    first, second, again = (contents(one.batches(epoch)) for epoch in (0, 1, 0))
    assert first == again
    assert first != second
    assert first != contents(other.batches(0))
    for epoch in range(3):
        assert len(list(one.batches(epoch))) == one.num_batches(epoch)


@pytest.mark.parametrize("task", ["translation", PICTURES])
def test_a_smaller_share_of_the_data_lies_in_a_larger_one(task, tmp_path):
    def read(share, seed=0):
        recipe = recipe_of_task(task, tmp_path / "corpus", train_share=share, seed=seed)
        examples, validation = task_class(config_class(recipe.model["kind"])).read(
            recipe, Progress(io.StringIO())
        )
        return [str(one) for one in rows_of(examples)], [str(one) for one in rows_of(validation)]

    whole, validation = read(1.0)
    shares = [read(share)[0] for share in (0.01, 0.1, 0.5)]
    assert [len(share) for share in shares] == [1, round(len(whole) / 10), round(len(whole) / 2)]
    for small, large in pairwise([*shares, whole]):
        left = iter(large)
        assert all(one in left for one in small)  # in their order
    assert read(0.5)[1] == validation
    assert sorted(read(0.5, seed=1)[0]) != sorted(shares[2])


def rows_of(examples):
    return [p.tobytes() for p in examples.pictures] if hasattr(examples, "pictures") else examples


# Validation


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
