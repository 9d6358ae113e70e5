"""The command line: each command is a file in ``commands/``, imported when it is asked for."""

import argparse
import functools
import importlib
import io
import os
import shlex
import sys
import traceback
import warnings
from contextlib import redirect_stderr
from difflib import get_close_matches
from pathlib import Path

import minitransformer
from minitransformer.core import interrupts
from minitransformer.core.errors import ExplainedError, in_words
from minitransformer.core.terminal import bare, note, readable, readable_streams
from minitransformer.parallel.processes import all_processes

COMMANDS = {
    "train": "train a model",
    "translate": "translate text",
    "generate": "go on with a text",
    "chat": "talk with a language model",
    "fill": "fill the gaps in a text",
    "tag": "say what words or sentences are",
    "classify": "say what pictures are of",
    "import": "make a run of the weights of others",
    "merge": "make a run whose adapters are in its weights",
    "export": "write the weights of a run for others",
    "evaluate": "score a run",
    "plot": "draw the curves of a run",
    "compare": "show runs side by side",
    "explore": "look into a trained model with a browser",
    "gradcheck": "compare every backward with numeric gradients",
    "check": "check your answer to an exercise of the lessons",
    "info": "show versions and the device, or what a run folder holds",
}

# Exit statuses. argparse ends with 2 where the command line itself is wrong.
FAILED = 1  # the command cannot do what it is asked
PIPE_CLOSED = 141  # what a shell reports of a command whose reader went away, as head does

EMPTY = "'' is empty; give a value, or leave it out"
TRACEBACK = "MINITRANSFORMER_TRACEBACK"  # in the environment: where errors come from is shown
PLAIN = "\0"  # before what follows "--" and is no option though it begins with a dash


def main(arguments=None):
    """Run the command line, with all processes that mpiexec started; returns the exit status."""
    _mend_streams()
    with readable_streams():
        try:
            processes = all_processes()
        except ExplainedError as error:
            return _failed(error)
        return processes.run(lambda: _main(arguments))


def _main(arguments):
    try:
        interrupts.importing_is_over()
        processes = all_processes()
        options = _parsed_by_all(sys.argv[1:] if arguments is None else arguments, processes)
        if processes.rank and not options.shared:
            return 0  # the first process does it
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: note(message)
            status = options.run(options)
            sys.stdout.flush()  # here, where a closed pipe is still ours to handle
            return status
    except KeyboardInterrupt as interrupt:
        note("interrupted", before="\n")
        return interrupts.exit_status(interrupt)
    except BrokenPipeError:
        # Python flushes standard output once more on its way out; let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except (OSError, ExplainedError) as error:
        return _failed(error, in_words(error))
    except MemoryError as error:
        return _failed(error, f"there is not enough memory. {error}".rstrip())
    except (ValueError, FloatingPointError) as error:  # of a model or a text that nobody foresaw
        return _failed(error, f"{error} (to see where: {TRACEBACK}=1 in the environment)")


class _Parser(argparse.ArgumentParser):
    """Whose help and usage, which some Pythons colour, go to the terminal as they are."""

    def print_help(self, file=None):
        super().print_help(bare(file or sys.stdout))

    def error(self, message):
        with redirect_stderr(bare(sys.stderr)):
            super().error(readable(message))


class _Command(_Parser):
    """The parser of one command, which learns what the command takes when it is to parse that."""

    def parse_known_args(self, args=None, namespace=None):
        command = self.prog.split()[-1]
        importlib.import_module(f"minitransformer.commands.{command}").add(self)
        for action in self._actions:
            several_texts = action.nargs == "*" and action.dest == "text"
            if not several_texts:  # of which one may be blank
                action.type = _not_empty(action.type or str)
        return super().parse_known_args(args, namespace)


def _not_empty(convert):
    """``convert``, refusing what a shell makes of a variable that is not set."""

    @functools.wraps(convert)
    def converted(text):
        if not text:
            raise argparse.ArgumentTypeError(EMPTY)
        return convert(text)

    return converted


def _mend_streams():
    """Standard streams that are there, and that take any text.

    One that the caller has closed (``<&-``) is as /dev/null. What the encoding of a terminal lacks,
    an umlaut in ASCII, comes out escaped.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  # to the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _parse(arguments):
    parser = _Parser(
        prog="minitransformer",
        description=minitransformer.__doc__,
        epilog="Exit status: 0 when all is done, 1 when something cannot be or is found wrong, 2 "
        "when the command line is wrong or nothing could be checked; 130 after Ctrl-C, 143 after "
        "SIGTERM (kill, batch systems, containers) and 129 after SIGHUP (a closed terminal), of "
        "which a training saves everything first; 141 when what reads the output went away. "
        f"Where an error comes from is shown with {TRACEBACK}=1 in the environment.",
    )
    parser.set_defaults(shared=False)
    parser.add_argument(
        "--version", action="version", version=f"%(prog)s {minitransformer.__version__}"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Command)
    for command, summary in COMMANDS.items():
        commands.add_parser(command, help=summary)
    if not arguments:
        parser.print_help(sys.stderr)
        parser.exit(2)
    command = arguments[0]
    if not command.startswith("-") and command not in COMMANDS:
        alike = get_close_matches(command, COMMANDS, 1)
        hint = f"did you mean {alike[0]}?" if alike else f"the commands are {', '.join(COMMANDS)}"
        parser.error(f"there is no command {command!r}; {hint}")
    try:
        options, rest = parser.parse_known_args(_marked(arguments))
    finally:
        sys.stdout.flush()  # of --help, and here as below
    rest = [text for text in rest if text != "--"]
    # argparse takes no more texts for "translate RUN --beam-size 1 TEXT" once it has met an option.
    several = [getattr(options, name, None) for name in ("text", "picture", "run_folders")]
    texts = next((texts for texts in several if isinstance(texts, list)), None)
    if texts is not None and not any(text.startswith("-") for text in rest):
        if "" in rest and texts is not getattr(options, "text", None):
            commands.choices[command].error(f"one argument more: {EMPTY}")
        texts += rest
    elif rest:
        _refuse(rest, commands.choices.get(command, parser))
    for name, value in vars(options).items():
        setattr(options, name, _unmarked(value))
    options.command = shlex.join(["minitransformer", *arguments])
    return options


def _parsed_by_all(arguments, processes):
    """The options, for which all processes are asked alike; of help, too, which ends them."""
    try:
        options = _parse(arguments)
    except SystemExit as end:
        if processes.count > 1 and not end.code:
            processes.require_same(**{"the command": "for help or a version"})
        raise
    if processes.count > 1:
        processes.require_same(**_asked(options))
    return options


def _refuse(rest, parser):
    """End with what the parser of a command did not take, and what may have been meant."""
    named = rest[0].partition("=")[0]
    options = [option for action in parser._actions for option in action.option_strings]
    alike = get_close_matches(named, options, 1) if named.startswith("--") else []
    hint = f"; did you mean {alike[0]}?" if alike else ""
    parser.error(f"unrecognized arguments: {' '.join(map(_unmarked, rest))}{hint}")


def _asked(options):
    """What several processes have to be asked alike, by name.

    Of files no more than whether there is one, for on each machine they may lie elsewhere.
    """
    from minitransformer.commands.fields import path_fields  # one process does without

    places = {"recipe", "resume", "run_folder", "pretrained", "text", *path_fields()}
    asked = {"the command": options.command.split()[1]}
    for name, value in vars(options).items():
        if value is not None and name != "command" and not callable(value):
            is_place = isinstance(value, Path) or (name in places and not isinstance(value, list))
            asked[name] = "given" if is_place else value
    return asked


def _marked(arguments):
    """The arguments, with PLAIN in front where argparse might forget that a "--" came before."""
    end = arguments.index("--") + 1 if "--" in arguments else len(arguments)
    plain = [PLAIN + text if text.startswith("-") else text for text in arguments[end:]]
    return [*arguments[:end], *plain]


def _unmarked(value):
    if isinstance(value, list):
        return [_unmarked(part) for part in value]
    return type(value)(str(value).removeprefix(PLAIN)) if isinstance(value, str | Path) else value


def _failed(error, problem=None):
    """Say in one line what went wrong, after where it did if that is asked for; the status."""
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    note(problem or error)
    return FAILED
