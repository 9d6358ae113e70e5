"""What the commands share that use a trained model: its run; and texts, and the exit status.

Such a command says which options it has, what a model makes of texts, and how that is printed.
"""

import io
import os
import shlex
import sys

from minitransformer.commands.arguments import add_device, add_own, add_run_folder, own_functions
from minitransformer.core.backend import CPU
from minitransformer.core.errors import InputError
from minitransformer.core.memory import keep_freed_memory
from minitransformer.core.terminal import bare, note
from minitransformer.parallel.processes import all_processes
from minitransformer.runs.checkpoint.file import RunError
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.task import task_class


def add_texts(parser, run, text):
    """The arguments of a command that is ``run(options)``; ``text`` says what one is."""
    parser.epilog = (
        "Input and output are UTF-8. A text that is not, or of which nothing can be made, is "
        "answered by an empty line, a message tells which it is, and the exit status is 1."
    )
    add_run_folder(parser)
    parser.add_argument(
        "text",
        nargs="*",
        help=f"{text}; without any, each line of standard input is one, or what is typed at a "
        "prompt",
    )
    parser.add_argument(
        "--whole",
        action="store_true",
        help="take all that is given as one text: the arguments, with blanks between, or standard "
        "input with its lines",
    )
    add_device(parser)
    add_own(parser)
    parser.set_defaults(run=run, usage_error=parser.error, shared=True)


def answer(options, use, answers, show, *, apart=False, **how):
    """Print what a trained model makes of the texts; returns the exit status.

    Args:
        use: a subclass of Trained.
        answers: from a ``use`` and a list of texts to an answer for each, one after the other; an
            InputError in place of one is for the user to read, and the next text follows.
        show: prints an answer, given it and the number of its text, counted from 1.
        apart: whether an empty line stands between two answers.
        how: more for :func:`opened`.

    Raises:
        RunError: the run was trained for another task; says which command is for it.
    """
    require_task(options.run_folder, use)
    done = refused = 0
    processes = all_processes()
    with own_functions(options):
        trained = opened(options, use, **how)
        inputs = _inputs(options) if processes.rank == 0 else iter(())
        while received := processes.first(next, inputs, None):
            texts = [_decoded(content, i) for i, content in enumerate(received, start=done + 1)]
            found = iter(answers(trained, [text for text in texts if text is not None]))
            for number, text in enumerate(texts, start=done + 1):
                if apart and number > 1:
                    print()
                if text is None:
                    print()
                    continue
                if unknown := trained.unknown(text):
                    shown = ", ".join(map(repr, unknown[:5]))
                    note(f"text {number}: not in the model's vocabulary: {shown}")
                result = next(found)
                if isinstance(result, InputError):
                    note(f"text {number}: {result}")
                    print()
                    refused += 1
                    continue
                show(result, number)
            sys.stdout.flush()
            done += len(texts)
            refused += texts.count(None)
    return 1 if refused else 0


def opened(options, use, **how):
    """The trained model that ``run_folder`` and ``device`` of the options name.

    Several processes share its batches. It is the command's own: if it is accelerated, the memory
    that it frees is kept.

    Args:
        use: a subclass of Trained, made with ``how``.
    """
    processes = all_processes()
    trained = use.load(options.run_folder, processes.device(options.device), **how)
    processes.require_same(parameters=trained.model.flat.data)
    trained.workers = processes.shared(trained.workers)
    if how.get("accelerate") and trained.model.device == CPU:
        keep_freed_memory()
    note_unfinished(options.run_folder, trained.origin)
    return trained


def note_unfinished(run_folder, origin):
    """Say of a run whose training goes on from where its parameters are."""
    if RunFolder(run_folder).is_unfinished():
        note(f"this training is not finished; the parameters are those of {origin}")


def require_task(run_folder, use):
    """Raise a RunError, which names another command, where a run is not for ``use``, a Trained."""
    config, _ = RunFolder(run_folder).load_config()
    if config.task != use.task:
        task = task_class(config)
        raise RunError(
            f"{run_folder} was trained for {config.task}; try it: minitransformer "
            f"{task.command} {shlex.quote(str(run_folder))}{task.tries}"
        )


def _inputs(options):
    """Iterates over lists of texts, bytes, to work on together, as soon as they are there."""
    if not (options.text or options.whole) and sys.stdin.isatty():
        return _prompted()
    if isinstance(bare(sys.stdout), io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    if options.text:  # as they were typed, whatever the locale has made of them
        texts = [" ".join(options.text)] if options.whole else options.text
        return iter([list(map(os.fsencode, texts))])
    if options.whole:
        return iter([[sys.stdin.buffer.read().removesuffix(b"\n")]])
    return _piped(sys.stdin.buffer)


def _prompted():
    print("Type a text and press Enter; an empty line or Ctrl-D ends.", file=sys.stderr)
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # a slip of the keyboard ends no session
    screen = sys.stdout if sys.stdout.isatty() else sys.stderr  # no prompt goes into a file
    try:
        while (text := _typed("> ", screen)).strip():
            yield [text.encode(errors="surrogateescape")]
    except EOFError:
        print(file=screen)


def _typed(prompt, screen):
    """The next line that is typed."""
    if screen is sys.stdout:  # where input can edit its line
        return input(prompt)
    print(prompt, end="", file=screen, flush=True)
    return input()


def _piped(stream):
    """The lines of a binary stream: all that have arrived, then those that did meanwhile.

    So a file is translated in large batches, and a program that writes one line and waits for its
    translation gets it.
    """
    rest = []  # of a line that has not ended, what has arrived; it may be megabytes
    while received := stream.read1(2**16):
        *lines, end = received.split(b"\n")
        if lines:
            lines[0] = b"".join([*rest, lines[0]])
            rest = []
            yield lines
        rest.append(end)
    if any(rest):
        yield [b"".join(rest)]


def _decoded(content, number):
    """The text of some bytes, with plain line ends; or None, with a note, if they are not UTF-8."""
    try:
        text = content.decode("utf-8-sig")  # without the byte order mark that some programs write
    except UnicodeDecodeError as error:
        note(
            f"text {number}: byte 0x{content[error.start]:02x} is not UTF-8 ({error.reason}); "
            "convert it, for example with iconv -f latin1 -t utf-8"
        )
        return None
    return text.replace("\r\n", "\n").removesuffix("\r")
