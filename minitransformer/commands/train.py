"""``minitransformer train``: from a recipe to a trained model."""

import argparse
import itertools
import os
import shlex
import shutil
import sys
import textwrap
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from minitransformer.commands import plot
from minitransformer.commands.arguments import add_anyway, add_device, add_own, flags
from minitransformer.commands.fields import add_fields, chosen_fields, path_fields
from minitransformer.core.backend import CPU
from minitransformer.core.errors import in_words
from minitransformer.core.interrupts import Stopped, exit_status, interrupts_raised
from minitransformer.core.libraries import MissingLibraryError
from minitransformer.parallel.alone import ALONE
from minitransformer.parallel.first import OnFirst
from minitransformer.parallel.processes import all_processes
from minitransformer.runs.checkpoint.file import RunError
from minitransformer.runs.lock import NAME as LOCK
from minitransformer.runs.lock import only_training
from minitransformer.runs.paths import RUNS
from minitransformer.runs.run_folder import RunFolder
from minitransformer.training.job import Job
from minitransformer.training.pretrained import Pretrained
from minitransformer.training.progress import Progress
from minitransformer.training.recipe import Recipe, recipe_names, recipe_summary
from minitransformer.training.session import prepare

FINE_TUNE = "fine-tune"  # the recipe where another model is there to begin with


def add(parser):
    parser.usage = (
        "%(prog)s (RECIPE | --from FOLDER | --resume FOLDER) [--FIELD VALUE ...] [options]"
    )
    parser.description = "Train a model in a run folder, or go on with a training."
    parser.formatter_class = argparse.RawDescriptionHelpFormatter  # for the list of recipes
    width = shutil.get_terminal_size().columns - 2  # as argparse has it
    listed = [
        textwrap.fill(f"  {name:<20}{recipe_summary(name)}", width, subsequent_indent=" " * 22)
        for name in recipe_names()
    ]
    parser.epilog = "\n".join(["recipes of the package:", *listed])
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "recipe",
        nargs="?",
        metavar="RECIPE",
        help="a recipe of the package, which are listed below, or a TOML file such as --dry-run "
        "prints",
    )
    which.add_argument(
        "--resume",
        metavar="FOLDER",
        help="go on with the run in this folder, as it was set up; where its data are may be "
        "said anew",
    )
    parser.add_argument(
        "--from",
        dest="pretrained",
        metavar="FOLDER",
        help="begin with what the run in this folder has learned, and with its vocabulary and "
        "sizes: any model of pictures or language model with another of its kind, a tagger with a "
        "masked language model, too. Without a RECIPE it is fine-tune, for language models",
    )
    parser.add_argument(
        "--start-over",
        action="store_true",
        help="with --resume: begin at the first step again; what was trained is moved into the "
        "folder before-1 in the run's",
    )
    parser.add_argument(
        "--run-folder",
        metavar="FOLDER",
        help="where to train (default: runs/RECIPE; with --own, the first free of runs/own, "
        "runs/own-2, …)",
    )
    add_device(parser)
    add_own(parser)
    add_anyway(parser, "train")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="prepare everything, report, print the settings as TOML, leave nothing behind",
    )
    add_fields(parser)
    parser.set_defaults(run=run, usage_error=parser.error, shared=True)


def run(options):
    """Train as ``options`` say; returns the exit status."""
    if options.anyway and not options.own:
        options.usage_error("--anyway goes with --own")
    if not (options.recipe or options.resume or options.pretrained):
        options.usage_error("say what to train: RECIPE, --from FOLDER, or --resume FOLDER")
    progress, processes = Progress(), all_processes()
    device = processes.device(options.device)
    if processes.count > 1:
        where = f"{processes.cores} cores" if device == CPU else "as many GPUs"
        progress.say(f"{processes.count} processes on {where}")
    pretrained = None
    if options.resume:
        moved, path = _moved(options), options.resume
        recipe = Recipe.of_run(OnFirst(RunFolder(path), processes))
        if moved:
            recipe = recipe.with_values(moved)
            recipe.data.require_used()
            recipe = _absolute(recipe)
    else:
        if options.pretrained:
            pretrained = processes.first(Pretrained.of_run, options.pretrained)
        recipe = _new_recipe(options, pretrained)
        path = processes.first(_new_path, options, progress)
    how = dict(pretrained=pretrained, start_over=options.start_over, processes=processes)
    job = Job(recipe, path, device, progress, **how)
    if not options.resume:
        recipe.data.require_used()
        job.task.require_sense(recipe)
        if not options.dry_run:
            processes.first(_require_free, job.folder, options)
    own = None
    with interrupts_raised():
        if options.own:
            from minitransformer.course.own.layers import require_paper_layers
            from minitransformer.course.own.training import checked  # most trainings do without

            require_paper_layers(recipe.model)
            own = checked(options.own, options.anyway, progress.say)
        job = replace(job, own=own)
        with own.standing_in() if own else nullcontext():
            return _dry_run(job) if options.dry_run else _run(options, job)


def _run(options, job):
    if not options.start_over and job.processes.first(_is_at_its_end, job):
        return 0
    with ExitStack() as held:
        job.processes.first(_begin, options, held, job)
        return _train(job)


def _is_at_its_end(job):
    """Whether a run has its model; what is left to do for one that was killed thereafter is done.

    Raises:
        RunError: the model is damaged or another run's.
    """
    folder = job.folder
    if not folder.model.exists():
        return False
    folder.bind(job.recipe.identity())
    folder.load_chosen()
    undrawn = not all(path.exists() for path in folder.pictures)
    uncertified = job.own and not folder.certificate.exists()
    moved = job.recipe.data != Recipe.of_run(folder).data
    if undrawn or uncertified or moved or (folder.path / LOCK).exists() or folder.leftovers():
        with only_training(folder.path):
            folder.create()  # which removes the leftovers
            if moved:
                folder.save_recipe(job.recipe.as_dict())
            if uncertified:
                folder.require_kept(job.own)
                _end(job)
                return True
            if undrawn:
                _draw(job)
    job.progress.say(f"{folder.path} is trained to its end; there is nothing to go on with")
    return True


def _begin(options, held, job):
    """Take the folder for this training, as long as the ExitStack ``held`` is open."""
    held.enter_context(_made(job.folder.path))
    held.enter_context(only_training(job.folder.path))
    if not options.resume:
        _require_free(job.folder, options)  # still: another training may have begun and ended


def _dry_run(job):
    with TemporaryDirectory() as path:
        trainer = prepare(replace(job, path=path, own=None, processes=ALONE))
    _warn_of_warmup(trainer)
    trainer.model.summary(file=sys.stderr)
    print(job.recipe.as_toml())
    return 0


def _warn_of_warmup(trainer):
    steps, warmup = trainer.total_steps, trainer.config.warmup_steps
    if steps < warmup:
        trainer.progress.say(
            f"the training has {steps} steps, all of them within warmup_steps={warmup}: the "
            "learning rate never reaches its peak; lower warmup_steps, or raise epochs"
        )


def _train(job):
    trainer = prepare(job)
    _warn_of_warmup(trainer)
    if trainer.resume():
        job.progress.say(f"resumed after step {trainer.step}, epoch {trainer.epoch + 1}")
    try:
        with _explained(job):
            if not trainer.step and job.pretrained and not trainer.model.config.own_head:
                score, scores = job.task.score, trainer.validate()  # it can say something already
                value = score.shown(scores[score.name])
                job.progress.say(f"before: validation {score.label} {value}")
            trainer.train()
    except Stopped as stop:
        go_on = job.folder.resume_command(job.processes.count)
        job.progress.say(f"stopped after step {trainer.step}; go on: {go_on}")
        return exit_status(stop)
    except KeyboardInterrupt as interrupt:  # a second Ctrl-C does not wait for the step to end
        go_on = job.folder.resume_command(job.processes.count)
        job.progress.say(f"stopped; go on from the last checkpoint: {go_on}")
        return exit_status(interrupt)
    finally:
        job.progress.close()
    job.processes.first(_end, job)
    return 0


def _explained(job):
    """Inside, an error that may come of a wrong function of a learner's says so."""
    if not job.own:
        return nullcontext()
    from minitransformer.course.own.training import explained

    return explained(job.own)


def _end(job):
    """What follows a training: pictures, a certificate, and what to do next."""
    _draw(job)
    if job.own:
        from minitransformer.course.own.training import certify

        job.progress.say("the package's functions begin the same training, to compare losses")
        try:
            with _explained(job):
                print(certify(job))
        except KeyboardInterrupt:
            go_on = job.folder.resume_command(job.processes.count)
            job.progress.say(f"the training is whole; its certificate: {go_on}")
            raise
        _draw(job)  # with the curve of the package's
    folder = shlex.quote(str(job.folder.path))
    with_own = f" --own {shlex.quote(str(job.folder.own))}" if job.own else ""
    what = f"{folder}{job.task.tries}{with_own}"
    job.progress.say(f"done; try it: minitransformer {job.task.command} {what}")


def _draw(job):
    try:
        plot.draw(job.folder)
    except (MissingLibraryError, OSError) as error:  # plot can still draw it, any time
        job.progress.say(f"no picture of it was made: {in_words(error)}")


@contextmanager
def _made(folder):
    """The folder and its parents are made where missing, and go again if they stay empty."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        with suppress(OSError):  # not empty
            for path in missing:
                path.rmdir()


def _moved(options):
    """The fields that say where the data of a run are now, by name; no others may be given."""
    given = {"run-folder": options.run_folder, "from": options.pretrained}
    given["dry-run"] = options.dry_run
    changes = chosen_fields(options)
    unused = [name for name, value in given.items() if value]
    if unused := [*unused, *(name for name in changes if name not in path_fields())]:
        options.usage_error(
            f"--resume goes on with a run as it was set up; leave out {flags(unused)}"
        )
    return changes


def _new_recipe(options, pretrained):
    if options.start_over:
        options.usage_error("--start-over goes with --resume; a new run starts anyway")
    changes = chosen_fields(options)
    recipe = Recipe.load(options.recipe or FINE_TUNE).with_values(changes)
    if pretrained:
        recipe = pretrained.fitted(recipe, changes)
    return _absolute(recipe)


def _absolute(recipe):
    """The recipe with absolute paths, so that it can be resumed from any folder."""
    paths = {name: getattr(recipe.data, name, "") for name in recipe.data.paths}
    return recipe.with_values({n: str(Path(path).absolute()) for n, path in paths.items() if path})


def _new_path(options, progress):
    if options.run_folder or not options.own:
        return options.run_folder or RUNS / Path(options.recipe or FINE_TUNE).stem
    *others, path = _to_free(RUNS / "own")
    for other in map(RunFolder, others):
        if other.is_unfinished():
            progress.say(f"{other.path} is not finished; go on: {other.resume_command()}")
    return path


def _require_free(folder, options):
    try:
        folder.require_free(own=options.own, beginning=options.pretrained)
    except RunError as error:
        go_on = f"go on with it: {folder.resume_command()}, or " if folder.is_unfinished() else ""
        *_, free = map(str, _to_free(folder.path))
        raise RunError(
            f"{error}; {go_on}choose another folder: --run-folder {shlex.quote(free)}"
        ) from error


def _to_free(path):
    """Yield ``path``, path-2, path-3, … up to the first where there is nothing."""
    numbered = (path.with_name(f"{path.name}-{number}") for number in itertools.count(2))
    for candidate in itertools.chain([path], numbered):
        yield candidate
        if not os.path.lexists(candidate):
            return
