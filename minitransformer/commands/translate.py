"""``minitransformer translate``: text in, text out."""

import argparse
import sys

from minitransformer import plots
from minitransformer.commands.arguments import (
    add_accelerate,
    add_device,
    add_run_folder,
    add_search,
    new_file,
    positive,
    translator_of,
)

PICTURES = (".png", ".pdf", ".svg")


def add(parser):
    parser.description = (
        "Translate the texts given, or standard input line by line, or what is typed at a prompt. "
        "Input and output are UTF-8, one line of output for each text."
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
    parser.set_defaults(run=run, usage_error=parser.error)


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
    translator = translator_of(options)
    done = 0
    for texts in _inputs(options.text):
        _translate(translator, texts, options, first=done + 1)
        done += len(texts)
    return 0


def _inputs(texts):
    """Lists of texts to translate together, each as soon as it is there."""
    if texts:
        return [texts]
    return _prompted() if sys.stdin.isatty() else _piped(sys.stdin.buffer)


def _prompted():
    print("Type a sentence and press Enter; an empty line or Ctrl-D ends.", file=sys.stderr)
    while True:
        try:
            text = input("> ")
        except EOFError:
            print()
            return
        if not text.strip():
            return
        yield [text]


def _piped(stream):
    """The lines of a binary stream: all that have arrived, then those that did meanwhile.

    So a file is translated in large batches, and a program that writes one line and waits for its
    translation gets it.
    """
    sys.stdout.reconfigure(encoding="utf-8")
    number, rest = 0, b""
    while received := stream.read1(2**16):
        *lines, rest = (rest + received).split(b"\n")
        if lines:
            yield [_decoded(line, number + i) for i, line in enumerate(lines, start=1)]
        number += len(lines)
    if rest:
        yield [_decoded(rest, number + 1)]


def _decoded(line, number):
    try:
        return line.decode("utf-8-sig")  # without the byte order mark that some programs write
    except UnicodeDecodeError as error:
        raise ValueError(
            f"standard input, line {number}: byte 0x{line[error.start]:02x} is not UTF-8 "
            f"({error.reason}); convert it, for example with iconv -f latin1 -t utf-8"
        ) from error


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
            print(fields + translation.text)
        if options.attention:
            _draw(best[0], options, number)
    sys.stdout.flush()


def _draw(translation, options, number):
    path = options.attention
    if len(options.text) != 1:
        path = path.with_stem(f"{path.stem}-{number}")
    if translation.attention is None:
        _note(f"text {number} is blank; there is nothing to draw")
        return
    plots.attention_map(translation.attention, translation.source_pieces, translation.pieces, path)
    _note(f"attention drawn: {path}")


def _note(text):
    print(f"minitransformer: {text}", file=sys.stderr)
