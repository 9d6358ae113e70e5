"""From a recipe to a trainer: data, vocabulary, model, task and run folder put together."""

import io
from dataclasses import asdict, replace

import numpy as np

from minitransformer.core.backend import CPU
from minitransformer.core.workers import default_shards, workers_for
from minitransformer.data.text.characters import CharacterVocabulary, load_vocabulary
from minitransformer.data.text.vocabulary import Vocabulary
from minitransformer.models.registry import new_model
from minitransformer.parallel.processes import ALONE
from minitransformer.runs.checkpoint import CheckpointError
from minitransformer.runs.checkpoint.binding import differing, fingerprint
from minitransformer.tasks.task import task_class
from minitransformer.training.pretrained import Beginning
from minitransformer.training.progress import Progress
from minitransformer.training.recipe import Recipe, RecipeError
from minitransformer.training.trainer import Trainer
from minitransformer.version import __version__


def prepare(recipe, run, device, progress, own=None, processes=ALONE, beginning=None):
    """A Trainer for ``recipe`` in the RunFolder ``run``, new or with what is there already.

    Reports to ``progress`` what it reads, leaves out and learns. ``own`` is the OwnFile that stands
    in, and ``beginning`` the Beginning that a new run has in place of random parameters and a
    vocabulary of its own; of both the run keeps a copy. Of several ``processes`` the first alone
    uses the folder.

    Raises:
        RecipeError, ValueError: fields of the recipe do not go together, or the folder holds a run
            of another recipe.
        CheckpointError: the folder holds something else than a run, or a run on other functions.
        CorpusError, VocabularyError: there is no corpus, or none to learn from.
        MissingLibraryError: there is no sentencepiece, or not what a validation or several GPUs
            need.
        ProcessError: the processes have other texts, recipes, or versions; or their GPUs do not
            come together.
    """
    recipe.training.require_used()
    processes.first(_require_usable, run, own, beginning)
    processes.require_same(
        **{"minitransformer": __version__, "NumPy": np.__version__},
        **{"--own": own.fingerprint if own else "not there"},
        **recipe.without_paths(),
    )
    processes.connect(device)
    if not recipe.training.shards:  # noted in the run, because the sums depend on it
        shards = processes.first(_shards, recipe, run, device, processes)
        recipe = recipe.with_value("shards", shards)
    begun_on = processes.first(_begun_on, run, device)
    training = recipe.training
    if device != CPU and begun_on == "cpu":  # cut for cores; a GPU shares out a batch by itself
        training = replace(training, shards=processes.count)
    new_task = task_class(recipe.model_config(recipe.data.vocabulary_size))
    new_task.require_libraries()
    examples, validation = new_task.read(recipe, progress)

    texts = {"training": fingerprint(examples), "validation": fingerprint(validation)}
    processes.require_same(**{f"the {split} text": words for split, words in texts.items()})
    of_data = new_task.of_data(examples, validation)
    vocabulary, beginning = processes.first(
        lambda: _begun_with(recipe, run, new_task, examples, of_data, texts, beginning)
    )
    config = recipe.model_config(len(vocabulary), **of_data)
    model = new_model(config, training.seed, device=device)
    if beginning:
        beginning.put_into(model)
        progress.say(f"begins with the parameters of {beginning.origin}")
    progress.say(f"model: {model.num_parameters():,} parameters on {device}")

    task = new_task(recipe, vocabulary, examples, validation, progress)
    processes.first(_set_up, run, own, beginning, vocabulary, config, recipe, texts, begun_on)
    return Trainer(model, training, run, task, progress, processes)


def validated(run, recipe, device, processes=ALONE):
    """The scores of a trained run's model on the text that validates, and the model's origin.

    Args:
        run: the RunFolder.
        recipe: the Recipe of that run.
        device: a Device or its name.
        processes: that share the work, and all get the scores.

    Returns:
        a dict of numbers, as :meth:`Task.validate`; lines, as :meth:`Task.details`; and what the
        parameters are, in words.

    Raises:
        CheckpointError, VocabularyError, OSError, DeviceError: as for
            :meth:`RunFolder.load_trained`; or the text has other labels than in the training.
        CorpusError, RecipeError, ValueError: as for :meth:`Task.read`.
        ProcessError: the processes have other parameters.
    """
    run.bind(recipe.identity())
    model, vocabulary, origin = run.load_trained(device)
    processes.require_same(parameters=model.flat.data)
    task, silent = task_class(model.config), Progress(io.StringIO())
    examples, validation = task.read(recipe, silent)
    _require_same(task.of_data(examples, validation), model.config, run)
    task = task(recipe, vocabulary, examples, validation, silent)
    workers = workers_for(model.device, recipe.training.shards or 1, processes.threads)
    task.workers = processes.shared(workers)
    with model.device.as_current(), workers.one_blas_thread():
        return task.validate(model), task.details(), origin


def _require_same(of_data, config, run):
    """Refuse a text that decides fields of the configuration otherwise than the run's has done."""
    trained = config.as_dict()
    for name, here, then in differing(of_data, {name: trained[name] for name in of_data}):
        raise CheckpointError(
            f"{run.path}: its text has {name} {here} now, and had {then} in the training; undo the "
            "change of the text"
        )


def _require_usable(run, own, beginning):
    if run.config.exists():
        run.require_kept(own)
    else:
        run.require_free(own, beginning)


def _shards(recipe, run, device, processes):
    """How many shards the run in the folder has, or how many a new one gets."""
    if run.config.exists():
        return Recipe.of_run(run).training.shards
    if device != CPU:
        return processes.count
    return default_shards(device, recipe.training.batch_tokens, processes.cores)


def _begun_on(run, device):
    """``"cpu"`` or ``"cuda"``: where the run in the folder was begun, or a new one is."""
    if run.config.exists():
        return run.begun_on()
    return "cpu" if device == CPU else "cuda"


def _begun_with(recipe, run, task, examples, of_data, texts, beginning):
    """The vocabulary and the Beginning or None: those of the run in the folder, or a new run's."""
    if run.config.exists():
        return _stored_vocabulary(recipe, run, of_data, texts), Beginning.kept(run)
    if beginning:
        return beginning.vocabulary, beginning
    return _new_vocabulary(recipe, task, examples), None


def _set_up(run, own, beginning, vocabulary, config, recipe, texts, begun_on):
    run.create()
    if not run.config.exists():
        if own:
            run.save_own(own.content)
        if beginning:
            beginning.keep_in(run)
        run.save_vocabulary(vocabulary)
        run.save_config(config, recipe.as_dict(), begun_on)
    run.bind(recipe.identity(), texts)


def _new_vocabulary(recipe, task, examples):
    """One that is learned from ``examples``."""
    learned_from = task.texts(examples)
    if recipe.data.unit == "characters":
        return CharacterVocabulary.train(learned_from)
    return Vocabulary.train(learned_from, recipe.data.vocabulary_size, mask=task.needs_mask)


def _stored_vocabulary(recipe, run, of_data, texts):
    """That of the run in the folder, if the run is of this recipe and these texts."""
    stored = Recipe.of_run(run)
    run.bind(stored.identity(), texts)
    run.require_bound()
    vocabulary = load_vocabulary(run.vocabulary)
    config, _ = run.load_config()
    wanted = recipe.model_config(len(vocabulary), **of_data)
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
