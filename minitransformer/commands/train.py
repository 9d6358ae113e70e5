"""``minitransformer train``: from a recipe to a trained model."""

import argparse
import itertools
import os
import shlex
import shutil
import sys
import textwrap
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from minitransformer.commands import plot
from minitransformer.commands.arguments import add_device, add_own
from minitransformer.commands.fields import add_fields, chosen_fields
from minitransformer.core.backend import CPU
from minitransformer.core.errors import in_words
from minitransformer.core.interrupts import Stopped, exit_status, interrupts_raised
from minitransformer.core.libraries import MissingLibraryError
from minitransformer.course.own.layers import require_paper_layers
from minitransformer.course.own.training import certify, checked, explained
from minitransformer.parallel.processes import all_processes
from minitransformer.runs.checkpoint import CheckpointError
from minitransformer.runs.lock import NAME as LOCK
from minitransformer.runs.lock import only_training
from minitransformer.runs.run_folder import RUNS, RunFolder
from minitransformer.tasks.task import task_class
from minitransformer.training.pretrained import Beginning
from minitransformer.training.progress import Progress
from minitransformer.training.recipe import PATHS, Recipe, RecipeError, recipe_names, recipe_summary
from minitransformer.training.session import prepare


def add(parser):
    parser.usage = "%(prog)s (RECIPE | --resume FOLDER) [--FIELD VALUE ...] [options]"
    parser.description = "Train a model in a run folder, or go on with a training."
    parser.formatter_class = argparse.RawDescriptionHelpFormatter  # for the list of recipes
    status = (
        "Exit status: 0 when the training is done, 1 when it cannot be, 2 when the command line is "
        "wrong; 130 after Ctrl-C, 143 after SIGTERM (kill, batch systems, containers), 129 after "
        "SIGHUP (a closed terminal), which save everything first."
    )
    width = shutil.get_terminal_size().columns - 2  # as argparse has it
    listed = [
        textwrap.fill(f"  {name:<20}{recipe_summary(name)}", width, subsequent_indent=" " * 22)
        for name in recipe_names()
    ]
    parser.epilog = "\n".join(
        ["recipes of the package:", *listed, "", textwrap.fill(status, width)]
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "recipe",
        nargs="?",
        metavar="RECIPE",
        help="a recipe of the package, which are listed below, or a TOML file such as --dry-run "
        "prints",
    )
    which.add_argument(
        "--resume", metavar="FOLDER", help="go on with the run in this folder, as it was set up"
    )
    parser.add_argument(
        "--from",
        dest="beginning",
        metavar="FOLDER",
        help="begin with what the run in this folder has learned, and with its vocabulary and "
        "sizes: a tagger with a masked language model or another tagger, a masked language model "
        "with another one",
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
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="with --own: train although a function is wrong, to see what comes of it",
    )
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
    progress, processes = Progress(), all_processes()
    device = processes.device(options.device)
    if processes.count > 1:
        where = f"{processes.cores} cores" if device == CPU else "as many GPUs"
        progress.say(f"{processes.count} processes on {where}")
    beginning = Beginning.of_run(options.beginning) if options.beginning else None
    if options.resume:
        _require_unchanged(options)
        run_folder, recipe = processes.first(_resumed, options)
    else:
        recipe = _new_recipe(options, beginning)
        run_folder = processes.first(_new_folder, options, recipe, progress)
    if options.own:
        require_paper_layers(recipe.model["kind"])
    with interrupts_raised():
        own = checked(options.own, options.anyway, progress.say) if options.own else None
        with own.standing_in() if own else nullcontext():
            if options.dry_run:
                return _dry_run(recipe, device, progress, beginning)
            return _run(options, run_folder, recipe, device, progress, own, processes, beginning)


def _run(options, run_folder, recipe, device, progress, own, processes, beginning):
    if not options.start_over and processes.first(_is_done, run_folder, recipe):
        processes.first(_end_again, run_folder, recipe, device, progress, own)
        return 0
    with ExitStack() as held:
        processes.first(_begin, options, held, run_folder, progress, own)
        return _train(recipe, run_folder, device, progress, own, processes, beginning)


def _end_again(run_folder, recipe, device, progress, own):
    """What is left to do for a training that is at its end, if it was killed thereafter."""
    undrawn = not all(path.exists() for path in run_folder.pictures)
    uncertified = own and not run_folder.certificate.exists()
    lock = run_folder.path / LOCK
    if undrawn or uncertified or lock.exists() or run_folder.leftovers():
        with only_training(run_folder.path):
            run_folder.create()  # which removes the leftovers
            if uncertified:
                run_folder.require_kept(own)
                _end(run_folder, recipe, device, progress, own)
                return
            if undrawn:
                _draw(run_folder, progress)
    progress.say(f"{run_folder.path} is trained to its end; there is nothing to go on with")


def _begin(options, held, run_folder, progress, own):
    """Take the folder for this training, as long as the ExitStack ``held`` is open."""
    held.enter_context(_made(run_folder.path))
    held.enter_context(only_training(run_folder.path))
    if not options.resume:
        _require_free(run_folder, options)  # still: another training may have begun and ended
    if options.start_over:
        progress.say(f"what was trained is now in {run_folder.set_aside()}")
        if own:
            run_folder.save_own(own.content)


def _dry_run(recipe, device, progress, beginning):
    with TemporaryDirectory() as folder:
        trainer = prepare(recipe, RunFolder(folder), device, progress, beginning=beginning)
    _warn_of_warmup(trainer)
    trainer.model.summary(file=sys.stderr)
    print(_toml(recipe))
    return 0


def _warn_of_warmup(trainer):
    steps, warmup = trainer.total_steps, trainer.config.warmup_steps
    if steps < warmup:
        trainer.progress.say(
            f"the training has {steps} steps, all of them within warmup_steps={warmup}: the "
            "learning rate never reaches its peak; lower warmup_steps, or raise epochs"
        )


def _train(recipe, run_folder, device, progress, own, processes, beginning):
    trainer = prepare(recipe, run_folder, device, progress, own, processes, beginning)
    _warn_of_warmup(trainer)
    if trainer.resume():
        progress.say(f"resumed after step {trainer.step}, epoch {trainer.epoch + 1}")
    try:
        with explained(own) if own else nullcontext():
            trainer.train()
    except Stopped as stop:
        progress.say(f"stopped after step {trainer.step}; go on: {_go_on(run_folder, own)}")
        return exit_status(stop)
    except KeyboardInterrupt as interrupt:  # a second Ctrl-C does not wait for the step to end
        go_on = _go_on(run_folder, own)
        progress.say(f"stopped; go on from the last checkpoint: {go_on}")
        return exit_status(interrupt)
    finally:
        progress.close()
    processes.first(_end, run_folder, recipe, device, progress, own)
    return 0


def _end(run_folder, recipe, device, progress, own):
    """What follows a training: pictures, a certificate, and what to do next."""
    trained, _ = run_folder.load_config()
    _draw(run_folder, progress)
    if own:
        progress.say("the package's functions begin the same training, to compare losses")
        try:
            with explained(own):
                print(certify(own, run_folder, recipe, device, progress))
        except KeyboardInterrupt:
            go_on = _go_on(run_folder, own)
            progress.say(f"the training is whole; its certificate: {go_on}")
            raise
        _draw(run_folder, progress)  # with the curve of the package's
    folder = shlex.quote(str(run_folder.path))
    with_own = f" --own {shlex.quote(str(run_folder.own))}" if own else ""
    command = task_class(trained).command
    progress.say(f"done; try it: minitransformer {command} {folder}{with_own}")


def _go_on(run_folder, own=None):
    """What to type to go on with the run in as many processes, and with functions as wrong."""
    count = all_processes().count
    processes = f"mpiexec -n {count} " if count > 1 else ""
    anyway = " --anyway" if own and own.wrong else ""
    return f"{processes}{run_folder.resume_command()}{anyway}"


def _draw(run_folder, progress):
    try:
        plot.draw(run_folder)
    except (MissingLibraryError, OSError) as error:  # plot can still draw it, any time
        progress.say(f"no picture of it was made: {in_words(error)}")


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


def _is_done(run_folder, recipe):
    """Whether a run has its model; raises a CheckpointError where that is damaged or another's."""
    if not run_folder.model.exists():
        return False
    run_folder.bind(recipe.identity())
    return run_folder.load_chosen() is not None


def _require_unchanged(options):
    unused = [name for name in ("run_folder", "beginning", "dry_run") if getattr(options, name)]
    unused += chosen_fields(options)
    if unused:
        unused = ["from" if name == "beginning" else name for name in unused]
        flags = ", ".join("--" + name.replace("_", "-") for name in unused)
        options.usage_error(f"--resume goes on with a run as it was set up; leave out {flags}")


def _resumed(options):
    run_folder = RunFolder(options.resume)
    return run_folder, Recipe.of_run(run_folder)


def _new_recipe(options, beginning):
    if options.start_over:
        options.usage_error("--start-over goes with --resume; a new run starts anyway")
    recipe = Recipe.load(options.recipe)
    changes = chosen_fields(options)
    for name, value in changes.items():
        recipe = recipe.with_value(name, value)
    if beginning:
        recipe = beginning.fitted(recipe, changes)
    for name in PATHS:  # a run can be resumed from wherever one is
        if path := recipe.value(name):
            recipe = recipe.with_value(name, str(Path(path).absolute()))
    return recipe


def _new_folder(options, recipe, progress):
    path = options.run_folder or RUNS / Path(options.recipe).stem
    if options.own and not options.run_folder:
        *others, path = _to_free(RUNS / "own")
        for other in map(RunFolder, others):
            if other.is_unfinished():
                progress.say(f"{other.path} is not finished; go on: {_go_on(other)}")
    run_folder = RunFolder(path)
    recipe.data.require_text()
    if not options.dry_run:
        _require_free(run_folder, options)
    return run_folder


def _require_free(run_folder, options):
    try:
        run_folder.require_free(options.own, options.beginning)
    except CheckpointError as error:
        go_on = f"go on with it: {_go_on(run_folder)}, or " if run_folder.is_unfinished() else ""
        *_, free = map(str, _to_free(run_folder.path))
        raise CheckpointError(
            f"{error}; {go_on}choose another folder: --run-folder {shlex.quote(free)}"
        ) from error


def _to_free(path):
    """Yield ``path``, path-2, path-3, … up to the first where there is nothing."""
    numbered = (path.with_name(f"{path.name}-{number}") for number in itertools.count(2))
    for candidate in itertools.chain([path], numbered):
        yield candidate
        if not os.path.lexists(candidate):
            return


def _toml(recipe):
    lines = []
    for section, values in recipe.as_dict().items():
        lines += ["", f"[{section}]"]
        lines += [f"{name} = {_toml_value(name, value)}" for name, value in values.items()]
    return "\n".join(lines[1:])


def _toml_value(name, value):
    """A value as TOML, in ASCII alone, so that any terminal and any editor leaves it as it is."""
    if not isinstance(value, str):
        return repr(value).lower()  # true and false; inf and other numbers are Python's
    if any("\ud800" <= c <= "\udfff" for c in value):
        raise RecipeError(f"{name}={value!r} is no Unicode and cannot be written as TOML")
    characters = (
        f"\\{c}" if c in '\\"' else c if " " <= c <= "~" else f"\\U{ord(c):08x}" for c in value
    )
    return f'"{"".join(characters)}"'
