"""What several commands take: numbers, files, a device, a search; and what they ask of a run."""

import argparse
import math
import shlex
import sys
from contextlib import contextmanager
from pathlib import Path

from minitransformer.core.backend import CPU
from minitransformer.core.errors import InputError
from minitransformer.core.memory import keep_freed_memory
from minitransformer.inference.translator import Translator
from minitransformer.parallel.processes import all_processes
from minitransformer.runs.checkpoint import CheckpointError
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.task import task_class


def add_run_folder(parser, **options):
    parser.add_argument("run_folder", help="folder of a run, as train makes it", **options)


def add_device(parser):
    parser.add_argument(
        "--device",
        default="auto",
        help="auto, cpu, cuda or cuda:N; auto is a GPU if one is usable (default: auto)",
    )


def add_search(parser):
    parser.add_argument(
        "--beam-size",
        type=positive,
        default=4,
        metavar="K",
        help="hypotheses extended together; 1 is greedy search (default: %(default)s)",
    )
    parser.add_argument(
        "--alpha",
        type=_exponent,
        default=0.6,
        help="exponent of the length penalty; 0 is none (default: %(default)s)",
    )


def add_accelerate(parser):
    parser.add_argument(
        "--accelerate",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether to use the faster twins of the layers (default: %(default)s)",
    )


def add_own(parser):
    parser.add_argument(
        "--own",
        type=Path,
        metavar="FILE",
        help="run this file, and let the functions written in it stand in for the package's: your "
        "own Transformer, see lesson 18",
    )


@contextmanager
def own_functions(options):
    """Inside, the functions of the file that ``own`` of the options names stand in, if it does."""
    if options.own:
        from minitransformer.course.exercises import parts_of  # nothing else needs these three
        from minitransformer.course.own import own
        from minitransformer.course.own.layers import require_paper_layers

        config, _ = RunFolder(options.run_folder).load_config()
        require_paper_layers(config.kind)
        with own(options.own) as file:
            print(
                f"minitransformer: {len(file.written)} of {len(parts_of('own'))} functions are "
                f"those of {options.own}, not checked here",
                file=sys.stderr,
            )
            yield
        return
    run_folder = RunFolder(options.run_folder)
    note_own(
        run_folder,
        f"here the package's run, and with --own FILE those of a file, such as {run_folder.own}",
    )
    yield


def note_own(run_folder, what):
    """Say of a run that was trained on other functions than the package's what runs here."""
    if run_folder.own.exists():
        print(
            f"minitransformer: this run was trained on functions of a learner's; {what}",
            file=sys.stderr,
        )


def require_task(run_folder, command):
    """Raise a CheckpointError unless this command is the one for the run's model."""
    config, _ = RunFolder(run_folder).load_config()
    fitting = task_class(config).command
    if fitting != command:
        raise CheckpointError(
            f"{run_folder} was trained for {config.task}; try it: minitransformer {fitting} "
            f"{shlex.quote(str(run_folder))}"
        )


def text_of(options):
    """The text of the command line or, without any, what is piped in; empty at a terminal.

    Raises:
        ValueError: what is piped in is not UTF-8.
    """
    if options.text or sys.stdin.isatty():
        return " ".join(options.text)
    sys.stdin.reconfigure(encoding="utf-8-sig")  # without the byte order mark that some write
    try:
        return sys.stdin.read().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"standard input is not UTF-8: {error}; convert it first") from error


def note_unknown(units):
    """Say which parts of a text the vocabulary has not, if there are any."""
    if units:
        shown = ", ".join(map(repr, units[:5]))
        print(f"minitransformer: not in the model's vocabulary: {shown}", file=sys.stderr)


def translator_of(options):
    """The Translator that ``run_folder``, ``device`` and ``accelerate`` of the options name.

    Several processes share its batches. This one is the command's own, so that it may keep the
    memory it frees.
    """
    processes = all_processes()
    device = processes.device(options.device)
    translator = Translator.load(options.run_folder, device, accelerate=options.accelerate)
    processes.require_same(parameters=translator.model.flat.data)
    translator.workers = processes.shared(translator.workers)
    if options.accelerate and translator.model.device == CPU:
        keep_freed_memory()
    return translator


def positive(text):
    """A whole number, 1 or more."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number, 1 or more")
    return int(text)


def _exponent(text):
    """A number, 0 or more."""
    if not 0 <= (number := float(text)) < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number, 0 or more")
    return number


def new_file(text):
    """A path that a file can be written to, known before the work for it begins."""
    path = Path(text)
    if not path.parent.is_dir():
        problem = f"there is no folder {path.parent}"
    elif path.is_dir():
        problem = "it is a folder"
    elif path.exists() and not path.is_file():
        problem = "it is no regular file"  # and would be replaced by one: a device, for all users
    else:
        return path
    raise argparse.ArgumentTypeError(f"{text!r} cannot be written: {problem}")
