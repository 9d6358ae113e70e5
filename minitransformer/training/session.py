"""From a recipe to a trainer: data, vocabulary, model, task and run folder put together."""

from dataclasses import asdict

import numpy as np

from minitransformer import __version__
from minitransformer.checkpoint.binding import differing, fingerprint
from minitransformer.data.characters import CharacterVocabulary, load_vocabulary
from minitransformer.data.vocabulary import Vocabulary
from minitransformer.models.kinds import new_model
from minitransformer.training.processes import ALONE
from minitransformer.training.recipe import Recipe, RecipeError
from minitransformer.training.task import task_class
from minitransformer.training.trainer import Trainer
from minitransformer.workers import default_shards


def prepare(recipe, run, device, progress, own=None, processes=ALONE):
    """A Trainer for ``recipe`` in the RunFolder ``run``, new or with what is there already.

    Reports to ``progress`` what it reads, leaves out and learns. ``own`` is the OwnFile that stands
    in, of which the run keeps a copy. Of several ``processes`` the first alone uses the folder.

    Raises:
        RecipeError, ValueError: fields of the recipe do not go together, or the folder holds a run
            of another recipe.
        CheckpointError: the folder holds something else than a run, or a run on other functions.
        CorpusError, VocabularyError: there is no corpus, or none to learn from.
        MissingLibraryError: there is no sentencepiece, or not what a validation needs.
        DisagreementError: the processes have other texts, recipes, or versions.
    """
    processes.first(_require_usable, run, own)
    processes.require_same(
        **{"minitransformer": __version__, "NumPy": np.__version__, "device": str(device)},
        **{"--own": own.fingerprint if own else "not there"},
        **recipe.without_paths(),
    )
    if not recipe.training.shards:  # noted in the run, because the sums depend on it
        shards = processes.first(_shards, recipe, run, device, processes)
        recipe = recipe.with_value("shards", shards)
    training = recipe.training
    new_task = task_class(recipe.model_config(recipe.data.vocabulary_size))
    new_task.require_libraries()
    examples, validation = new_task.read(recipe, progress)

    texts = {"training": fingerprint(examples), "validation": fingerprint(validation)}
    processes.require_same(**{f"the {split} text": words for split, words in texts.items()})
    vocabulary = processes.first(_vocabulary, recipe, run, examples, texts)
    config = recipe.model_config(len(vocabulary))
    model = new_model(config, training.seed, device=device)
    progress.say(f"model: {model.num_parameters():,} parameters on {device}")

    task = new_task(recipe, vocabulary, examples, validation, progress)
    task.processes = processes
    processes.first(_set_up, run, own, vocabulary, config, recipe, texts)
    return Trainer(model, training, run, task, progress, processes)


def _require_usable(run, own):
    if run.config.exists():
        run.require_kept(own)
    else:
        run.require_free()


def _shards(recipe, run, device, processes):
    """How many shards the run in the folder has, or how many a new one gets."""
    if run.config.exists():
        return Recipe.of_run(run).training.shards
    return default_shards(device, recipe.training.batch_tokens, processes.cores)


def _set_up(run, own, vocabulary, config, recipe, texts):
    run.create()
    if not run.config.exists():
        if own:
            run.save_own(own.content)
        run.save_vocabulary(vocabulary)
        run.save_config(config, recipe.as_dict())
    run.bind(recipe.identity(), texts)


def _vocabulary(recipe, run, examples, texts):
    """The vocabulary of the run in the folder, or one learned from ``examples`` for a new run."""
    if not run.config.exists():
        learned_from = [text for example in examples for text in example]
        if recipe.data.unit == "characters":
            return CharacterVocabulary.train(learned_from)
        return Vocabulary.train(learned_from, recipe.data.vocabulary_size)
    stored = Recipe.of_run(run)
    run.bind(stored.identity(), texts)
    run.require_bound()
    vocabulary = load_vocabulary(run.vocabulary)
    config, _ = run.load_config()
    wanted = recipe.model_config(len(vocabulary))
    differences = [
        *differing(wanted.as_dict(), config.as_dict()),
        *differing(asdict(recipe.data), asdict(stored.data)),
        *differing(asdict(recipe.training), asdict(stored.training)),
    ]
    if differences:
        named = ", ".join(
            f"{name} is {then} there, and {here} here" for name, here, then in differences
        )
        raise RecipeError(
            f"{run.path} holds a run of another recipe: {named}; resume it with its own, which is "
            f"in {run.config.name}, or choose another folder"
        )
    return vocabulary
