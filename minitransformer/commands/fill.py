"""``minitransformer fill``: what might stand in the gaps of a text."""

import sys

from minitransformer.commands.arguments import positive
from minitransformer.commands.texts import add_texts, answer
from minitransformer.core.errors import InputError
from minitransformer.core.terminal import exact
from minitransformer.inference.filler import Filler


def add(parser):
    parser.description = (
        "Fill the gaps in texts. A gap is written ___ and takes one piece of the vocabulary, "
        "often a word. Printed are the text with the likeliest piece in each gap, and for each "
        "gap the likeliest pieces with their probabilities; other gaps stay open meanwhile. "
        "Between two texts stands an empty line."
    )
    add_texts(parser, run, 'a sentence with gaps, "Die Frau liest ein ___."')
    parser.add_argument(
        "--top", type=positive, default=5, metavar="N", help="pieces for each gap (default: 5)"
    )


def run(options):
    """Print the texts and what might stand in their gaps; returns the exit status."""

    def fill(filler, texts):
        return (_filled(filler, text, options.top) for text in texts)

    return answer(options, Filler, fill, _show, apart=True)


def _filled(filler, text, top):
    """The Filling, or the InputError of a text without a gap: others may have some."""
    try:
        return filler.fill(text, top)
    except InputError as error:
        return error


def _show(filling, number):
    lines = [filling.text]
    for i, gap in enumerate(filling.gaps, start=1):
        lines.append(f"\ngap {i}" if len(filling.gaps) > 1 else "")
        lines += [f"{probability:7.1%}  {piece}" for piece, probability in gap]
    print("\n".join(lines), file=exact(sys.stdout))
