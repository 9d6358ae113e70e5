"""A training run small enough to repeat many times, on a language made up here.

A sentence is translated by saying its words in reverse order.
"""

import io
import json
import random
from functools import lru_cache
from itertools import islice

import numpy as np

from minitransformer.core.backend import CPU
from minitransformer.data.text import toy
from minitransformer.models.registry import config_class
from minitransformer.runs.lock import only_training
from minitransformer.runs.run_folder import RunFolder
from minitransformer.training.job import Job
from minitransformer.training.progress import Progress
from minitransformer.training.recipe import Recipe
from minitransformer.training.session import prepare

SIZES = {"train": 40, "validation": 6}
COMMON = dict(d_model=8, num_heads=2, d_ff=16, max_length=20, dropout=0.1, norm="pre")
COMMON |= dict(epochs=3, batch_tokens=120, warmup_steps=4, peak_learning_rate=1e-2, average=2)
COMMON |= dict(log_every=1, save_every=1, shards=2)
OF_TRANSLATORS = dict(corpus="files", vocabulary_size=36, max_tokens=20, subword_dropout=0.1)
OF_TRANSLATORS |= dict(num_encoder_layers=1, num_decoder_layers=1, accumulate=2)


def tiny_recipe(folder, **changes):
    """A Recipe for the corpus, which is written to ``folder``.

    ``train`` and ``validation`` are texts for both sides in place of ours; the others are fields.
    """
    rng = random.Random(0)
    words = [a + b for a in "bdgk" for b in ("ao", "i", "u")]
    folder.mkdir(parents=True, exist_ok=True)
    fields = COMMON | OF_TRANSLATORS
    for split, size in SIZES.items():
        sentences = [rng.choices(words, k=rng.randint(2, 4)) for _ in range(size)]
        for side, step in (("source", 1), ("target", -1)):
            path = folder / f"{split}.{side}"
            text = "".join(" ".join(words[::step]) + "\n" for words in sentences)
            path.write_text(changes.get(split, text))
            if changes.get("corpus", "files") == "files":
                fields[f"{split}_{side}"] = str(path)
    changes = {name: value for name, value in changes.items() if name not in SIZES}
    return recipe_of(changes.pop("kind", "transformer"), fields, **changes)


def recipe_of(kind, usual=COMMON, **fields):
    """A Recipe for a kind, with these fields, and those of the ``usual`` ones that it has."""
    recipe = Recipe().with_value("kind", kind)
    for name, value in (usual | fields).items():
        if name in recipe.settings() or name in fields:
            recipe = recipe.with_value(name, value)
    return recipe


def resize_toy_corpus(monkeypatch, sizes):
    """Give the toy corpus other sizes; the whole one is kept for the tests to come."""
    monkeypatch.setattr(toy, "SIZES", sizes)
    monkeypatch.setattr(toy, "_made_up", lru_cache(maxsize=1)(toy._made_up.__wrapped__))


class AlwaysSays:
    """In place of a model of ids: the same logits (V,) at every position."""

    def __init__(self, logits):
        self.row = logits

    def inputs(self, batch):
        return (batch.ids,)

    def logits(self, ids):
        return np.tile(self.row, (*ids.shape, 1)), None


def config_for(recipe, vocabulary_size):
    """The configuration of the recipe's model, for a vocabulary of that size."""
    return config_class(recipe.model["kind"]).of_vocabulary(vocabulary_size, **recipe.choices())


def tiny_trainer(recipe, folder, stream=None, pretrained=None, device=CPU):
    """A Trainer for ``recipe`` in ``folder``, in the state of its newest checkpoint."""
    progress = Progress(io.StringIO() if stream is None else stream)
    trainer = prepare(Job(recipe, folder, device, progress, pretrained=pretrained))
    trainer.resume()
    return trainer


def trained(recipe, folder, pretrained=None):
    """The Trainer after its whole run in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with only_training(folder):
        trainer = tiny_trainer(recipe, folder, pretrained=pretrained)
        trainer.train()
    return trainer


def trained_in_two(recipe, folder, steps):
    """Its whole run in ``folder``, of which somebody stops the first part after ``steps``."""
    cut = tiny_trainer(recipe, folder)
    with cut.workers.one_blas_thread():
        for _ in islice(cut.steps(), steps):
            pass
    cut.save()
    trained(recipe, folder)


def with_values(recipe, **values):
    """The Recipe with other values."""
    return recipe.with_values(values)


def with_scores(trainer, *scores):
    """Let its validations find these scores, one after the other."""
    remaining = iter(scores)
    trainer.task.validate = lambda model: {trainer.task.score.name: next(remaining)}
    return trainer


def record(folder):
    """What a run in ``folder`` leaves, but for its speed: log entries and bytes of the model."""
    run = RunFolder(folder)
    entries = [json.loads(line) for line in run.log.path.read_text().splitlines()]
    for entry in entries:
        for time in ("tokens_per_second", "seconds"):
            entry.pop(time, None)
    return entries, run.model.read_bytes()
