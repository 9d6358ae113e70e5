"""From a job to a trainer: data, what a run keeps, model, task and run folder put together."""

import io
from dataclasses import asdict, replace

import numpy as np

from minitransformer.core.backend import CPU
from minitransformer.core.errors import require_one_of
from minitransformer.core.workers import default_shards, workers_for
from minitransformer.models.registry import new_model
from minitransformer.parallel.alone import ALONE
from minitransformer.runs.checkpoint.binding import differing
from minitransformer.tasks.task import task_class
from minitransformer.training.pretrained import Pretrained
from minitransformer.training.progress import Progress
from minitransformer.training.recipe import Recipe, RecipeError
from minitransformer.training.trainer import Trainer
from minitransformer.version import __version__


def prepare(job):
    """A Trainer for a Job, in a new run folder or with what is there already.

    Raises:
        RecipeError, ValueError: fields of the recipe do not go together, or the folder holds a run
            of another recipe.
        RunError: the folder holds something else than a run, or a run on other functions.
        InputError, VocabularyError: there are no data, or none to learn from.
        MissingLibraryError: the task, its validation or several GPUs need one that is not there.
        ProcessError: the processes have other data, recipes, or versions; or their GPUs do not
            come together.
    """
    run, processes, progress = job.run, job.processes, job.progress
    stored = _stored(job)
    again = bool(stored) and job.start_over
    begun_on = run.begun_on() if stored else "cpu" if job.device == CPU else "cuda"
    recipe = _with_shards(job, stored)
    job.task.require_sense(recipe)
    examples, validation = job.task.read(recipe, progress)
    texts = _fingerprints(job.task, examples, validation)
    processes.require_same(**{f"the {split} split": words for split, words in texts.items()})
    if stored:
        run.bind(stored.identity(), texts)
        if not again:
            run.require_bound()
    kept, pretrained = _kept(job, stored, recipe, examples, validation)
    config = recipe.model_config(**job.task.of_data(recipe, examples, validation, kept))
    if stored:
        _require_same_recipe(run, recipe, config, stored)
    model = new_model(config, recipe.training.seed, device=job.device)
    if pretrained:
        pretrained.put_into(model)
        progress.say(f"begins with the parameters of {pretrained.origin}")
    progress.say(f"model: {config.trains()} on {job.device}")
    task = job.task(recipe, kept, examples, validation, progress)

    # Nothing speaks against it, so the folder is changed.
    own = job.own.content if job.own else None
    if again:
        progress.say(f"what was trained is now in {run.set_aside()}")
        run.keep(own=own)
    run.create()
    if not stored:
        run.keep(own=own, beginning=pretrained and pretrained.as_file(), **kept)
    if again or not stored:
        anyway = bool(job.own.wrong) if job.own else None
        begun = dict(begun_on=begun_on, processes=processes.count, anyway=anyway)
        run.save_config(config, recipe.as_dict(), **begun)
    elif processes.first(lambda: recipe.data != stored.data):  # where the first has them
        run.save_recipe(replace(stored, data=recipe.data).as_dict())
    run.bind(recipe.identity(), texts)
    training = recipe.training
    if job.device != CPU and begun_on == "cpu":  # cut for cores; a GPU shares out a batch by itself
        training = replace(training, shards=processes.count)
    return Trainer(model, training, run, task, progress, processes)


def _stored(job):
    """The Recipe of the run that is there, or None, once all processes may begin or go on."""
    recipe, run, processes = job.recipe, job.run, job.processes
    recipe.training.require_used(recipe.model)
    there = run.exists()
    if not there:
        recipe.data.require_used()
        run.require_free(own=job.own, beginning=job.pretrained)
    elif not job.start_over:
        run.require_kept(job.own)
    processes.require_same(
        **{"minitransformer": __version__, "NumPy": np.__version__},
        **{"--own": job.own.fingerprint if job.own else "not there"},
        **recipe.without_paths(),
    )
    processes.connect(job.device)
    return Recipe.of_run(run) if there else None


def _with_shards(job, stored):
    """The recipe with a number of shards, which the run notes, because the sums depend on it."""
    recipe, processes = job.recipe, job.processes
    if recipe.training.shards:
        return recipe
    if stored:
        shards = stored.training.shards
    elif job.device != CPU:  # a GPU shares out a batch by itself
        shards = processes.count
    else:
        batch_tokens, smallest = recipe.training.batch_tokens, job.task.smallest_shard
        shards = processes.first(default_shards, batch_tokens, processes.cores, smallest)
    return recipe.with_value("shards", shards)


def _kept(job, stored, recipe, examples, validation):
    """What the run keeps beside the parameters, by name, and the Pretrained it begins with."""
    run, pretrained = job.run, Pretrained.kept_in(job.run) if stored else job.pretrained
    if not pretrained and recipe.model.get("lora"):
        raise RecipeError(
            f"{run.path} has no {run.beginning.name}; put it back"
            if stored
            else "lora is for a model that has learned something; give --from FOLDER"
        )
    if stored:
        return {name: run.load_kept(name) for name in run.kept}, pretrained
    if pretrained and job.task.fitting(pretrained.kept):
        return pretrained.kept, pretrained
    for name in run.kept:  # which takes seconds
        job.progress.say(f"learning the {name} from the training data")
    return job.processes.first(job.task.keep, recipe, examples, validation), pretrained


def validated(run, recipe, device, processes=ALONE, split="validation", others=None, **how):
    """The scores of a trained run's model on the data that validate, or on those of another split.

    Args:
        run: the RunFolder.
        recipe: the Recipe of that run; with ``others`` fields of its data may be changed.
        device: a Device or its name.
        processes: that share the work, and all get the scores.
        split: ``"validation"``, or that of the task's ``splits`` for the corpus.
        others: examples in place of both; then no data of the training are read.
        how: more for :meth:`Task.validate`.

    Returns:
        a dict of numbers, as :meth:`Task.validate`; the Task, which has validated; and what the
        parameters are, in words.

    Raises:
        RunError, VocabularyError, OSError, DeviceError: as for
            :meth:`RunParameters.load_trained` and :meth:`RunFolder.load_kept`; or the data are
            others than in the training.
        RecipeError, ValueError: as for :meth:`Task.read`.
        ProcessError: the processes have other parameters.
    """
    config, _ = run.load_config()
    task, silent = task_class(config), Progress(io.StringIO())
    if others is None:
        tests = [name for corpus, name in task.splits.items() if corpus == recipe.data.corpus]
        require_one_of(["validation", *tests], "split", split)
        examples, validation = task.read(recipe, silent)
        run.bind(recipe.identity(), _fingerprints(task, examples, validation))
        if split != "validation":
            validation = task.read_split(recipe, split)
    else:
        examples = validation = others
        run.bind(Recipe.of_run(run).identity())
    model, origin = run.load_trained(device)
    kept = {name: run.load_kept(name) for name in run.kept}
    processes.require_same(parameters=model.flat.data)
    task = task(recipe, kept, examples, validation, silent)
    workers = workers_for(model.device, recipe.training.shards or 1, processes.threads)
    task.workers = processes.shared(workers)
    with model.device.as_current(), workers.one_blas_thread():
        return task.validate(model, **how), task, origin


def _fingerprints(task, examples, validation):
    """What tells the data of each split from others, in words."""
    return {"training": task.fingerprint(examples), "validation": task.fingerprint(validation)}


def _require_same_recipe(run, recipe, wanted, stored):
    """Refuse a run in the folder that is of another recipe, or of another model than ``wanted``.

    Its data may have moved: whether they are the same their fingerprints tell.
    """
    config, _ = run.load_config()
    data = differing(asdict(recipe.data), asdict(stored.data))
    differences = [
        *differing(wanted.as_dict(), config.as_dict()),
        *(field for field in data if field[0] not in recipe.data.paths),
        *differing(recipe.training.as_dict(), stored.training.as_dict()),
    ]
    if differences:
        named = ", ".join(
            f"{name} is {then} there, and {here} here" for name, here, then in differences
        )
        raise RecipeError(
            f"{run.path} holds a run of another recipe: {named}; resume it with its own, which is "
            f"in {run.config.name}, or choose another folder"
        )
