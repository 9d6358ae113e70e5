"""``minitransformer fill``: what might stand in the gaps of a text."""

import sys

from minitransformer.commands.arguments import (
    add_device,
    add_run_folder,
    note_unknown,
    positive,
    require_task,
    text_of,
)
from minitransformer.core.terminal import exact
from minitransformer.inference.filler import Filler


def add(parser):
    parser.description = (
        "Fill the gaps in a text. A gap is written ___ and takes one piece of the vocabulary, "
        "often a word. Printed are the text with the likeliest piece in each gap, and for each "
        "gap the likeliest pieces with their probabilities; other gaps stay open meanwhile."
    )
    add_run_folder(parser)
    parser.add_argument(
        "text",
        nargs="*",
        help='a sentence with gaps, "Die Frau liest ein ___."; without any, standard input is read',
    )
    parser.add_argument(
        "--top", type=positive, default=5, metavar="N", help="pieces for each gap (default: 5)"
    )
    add_device(parser)
    parser.set_defaults(run=run)


def run(options):
    """Print the text and what might stand in its gaps; returns the exit status."""
    require_task(options.run_folder, "fill")
    filler = Filler.load(options.run_folder, options.device)
    text = text_of(options)
    filling = filler.fill(text, options.top)
    note_unknown(filler.unknown(text))
    out = exact(sys.stdout)
    print(filling.text, file=out)
    for number, gap in enumerate(filling.gaps, start=1):
        print(f"\ngap {number}" if len(filling.gaps) > 1 else "", file=out)
        for piece, probability in gap:
            print(f"{probability:7.1%}  {piece}", file=out)
    return 0
