"""``minitransformer translate``: text in, text out."""

import argparse
import io
import itertools
import os
import sys

from minitransformer.commands.arguments import (
    add_accelerate,
    add_device,
    add_own,
    add_run_folder,
    add_search,
    new_file,
    own_functions,
    positive,
    require_task,
    translator_of,
)
from minitransformer.core.regular_file import errors_named
from minitransformer.core.terminal import bare, exact
from minitransformer.evaluation import plots
from minitransformer.parallel.processes import all_processes

PICTURES = (".png", ".pdf", ".svg")


def add(parser):
    parser.description = (
        "Translate the texts given, or standard input line by line, or what is typed at a prompt. "
        "Input and output are UTF-8, one line of output for each text. For a text that is not "
        "UTF-8 that line is empty, a message tells which it is, and the exit status is 1."
    )
    add_run_folder(parser)
    parser.add_argument("text", nargs="*", help="sentences; without any, standard input is read")
    add_search(parser)
    parser.add_argument(
        "--n-best",
        type=positive,
        default=1,
        metavar="N",
        help="print the N best, best first, as lines of three fields with tabs between: number of "
        "the text, score (log-probability over length penalty), translation (default: 1, and the "
        "translation alone)",
    )
    parser.add_argument(
        "--attention",
        type=_picture,
        metavar="FILE",
        help="draw where the model looked, as .png, .pdf or .svg; for anything but one text given "
        "as an argument, name.png becomes name-1.png, name-2.png, one for each text",
    )
    add_device(parser)
    add_accelerate(parser)
    add_own(parser)
    parser.set_defaults(run=run, usage_error=parser.error, shared=True)


def _picture(text):
    path = new_file(text)
    if path.suffix not in PICTURES:
        raise argparse.ArgumentTypeError(f"{text!r} must end in {', '.join(PICTURES)}")
    return path


def run(options):
    """Translate as ``options`` say; returns the exit status."""
    if options.n_best > options.beam_size:
        options.usage_error(
            f"--n-best {options.n_best} needs --beam-size {options.n_best} or more, "
            f"and it is {options.beam_size}"
        )
    require_task(options.run_folder, "translate")
    done = refused = 0
    processes = all_processes()
    with own_functions(options):
        translator = translator_of(options)
        inputs = _inputs(options.text) if processes.rank == 0 else iter(())
        while texts := processes.first(next, inputs, None):
            _translate(translator, [text or "" for text in texts], options, first=done + 1)
            done += len(texts)
            refused += texts.count(None)
    return 1 if refused else 0


def _inputs(texts):
    """Iterates over lists of texts to translate together, as soon as they are there.

    None is no text.
    """
    if not texts and sys.stdin.isatty():
        return _prompted()
    if isinstance(bare(sys.stdout), io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    if not texts:
        return _piped(sys.stdin.buffer)
    # As they were typed, whatever the locale has made of them.
    texts = [_decoded(os.fsencode(text), f"text {i}") for i, text in enumerate(texts, start=1)]
    return iter([texts])


def _prompted():
    print("Type a sentence and press Enter; an empty line or Ctrl-D ends.", file=sys.stderr)
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # a slip of the keyboard ends no session
    for number in itertools.count(1):
        try:
            text = input("> ")
        except EOFError:
            print()
            return
        if not text.strip():
            return
        yield [_decoded(text.encode(errors="surrogateescape"), f"text {number}")]


def _piped(stream):
    """The lines of a binary stream: all that have arrived, then those that did meanwhile.

    So a file is translated in large batches, and a program that writes one line and waits for its
    translation gets it.
    """
    number, rest = 0, []  # of a line that has not ended, what has arrived; it may be megabytes
    while received := stream.read1(2**16):
        *lines, end = received.split(b"\n")
        if lines:
            lines[0] = b"".join([*rest, lines[0]])
            rest = []
            yield [_decoded_line(line, number + i) for i, line in enumerate(lines, start=1)]
        rest.append(end)
        number += len(lines)
    if any(rest):
        yield [_decoded_line(b"".join(rest), number + 1)]


def _decoded_line(line, number):
    return _decoded(line, f"standard input, line {number}")


def _decoded(line, place):
    """The text of some bytes, or None, with a note, if they are not UTF-8."""
    try:
        return line.decode("utf-8-sig")  # without the byte order mark that some programs write
    except UnicodeDecodeError as error:
        _note(
            f"{place}: byte 0x{line[error.start]:02x} is not UTF-8 ({error.reason}); convert it, "
            "for example with iconv -f latin1 -t utf-8"
        )
        return None


def _translate(translator, texts, options, first):
    results = translator.translations(
        texts,
        beam_size=options.beam_size,
        alpha=options.alpha,
        n_best=options.n_best,
        attention=bool(options.attention),
    )
    for number, best in enumerate(results, start=first):
        if best[0].truncated:
            _note(f"text {number} is too long for this model; its end was left out")
        for translation in best:
            fields = f"{number}\t{translation.score:.4f}\t" if options.n_best > 1 else ""
            print(f"{fields}{translation.text}", file=exact(sys.stdout))
        if options.attention and all_processes().rank == 0:
            _draw(best[0], options, number)
    sys.stdout.flush()


def _draw(translation, options, number):
    path = options.attention
    if len(options.text) != 1:
        path = path.with_stem(f"{path.stem}-{number}")
    if translation.attention is None:
        _note(f"text {number} is blank; there is nothing to draw")
        return
    pieces = translation.source_pieces, translation.pieces
    with errors_named(path):
        plots.attention_map(translation.attention, *pieces, path)
    _note(f"attention drawn: {path}")


def _note(text):
    print(f"minitransformer: {text}", file=sys.stderr)
