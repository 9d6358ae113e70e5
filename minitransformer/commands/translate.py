"""``minitransformer translate``: text in, text out."""

import sys
from functools import partial

from minitransformer.commands.arguments import (
    add_accelerate,
    add_search,
    numbered,
    picture_file,
    positive,
    search_of,
)
from minitransformer.commands.texts import add_texts, answer
from minitransformer.core.regular_file import errors_named
from minitransformer.core.terminal import exact, note
from minitransformer.evaluation import plots
from minitransformer.inference.translator import Translator
from minitransformer.parallel.processes import all_processes


def add(parser):
    parser.description = "Translate texts, one line of output for each."
    add_texts(parser, run, "a sentence")
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
        type=picture_file,
        metavar="FILE",
        help="draw where the model looked, as .png, .pdf or .svg; for anything but one text given "
        "as an argument, name.png becomes name-1.png, name-2.png, one for each text",
    )
    add_accelerate(parser)


def run(options):
    """Translate as ``options`` say; returns the exit status."""
    how = search_of(options)
    if options.n_best > how["beam_size"]:
        options.usage_error(
            f"--n-best {options.n_best} needs --beam-size {options.n_best} or more, "
            f"and it is {how['beam_size']}"
        )

    def translate(translator, texts):
        attention = bool(options.attention)
        return translator.translations(texts, **how, n_best=options.n_best, attention=attention)

    show = partial(_show, options)
    return answer(options, Translator, translate, show, accelerate=options.accelerate)


def _show(options, best, number):
    if best[0].truncated:
        note(f"text {number} is too long for this model; its end was left out")
    for found in best:
        fields = f"{number}\t{found.score:.4f}\t" if options.n_best > 1 else ""
        print(f"{fields}{found.text}", file=exact(sys.stdout))
    if options.attention and all_processes().rank == 0:
        _draw(best[0], options, number)


def _draw(translated, options, number):
    path = options.attention
    if len(options.text) != 1:
        path = numbered(path, number)
    if translated.attention is None:
        note(f"text {number} is blank; there is nothing to draw")
        return
    pieces = translated.source_pieces, translated.pieces
    with errors_named(path):
        plots.attention_map(translated.attention, *pieces, path)
    note(f"attention drawn: {path}")
