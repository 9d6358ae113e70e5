"""``minitransformer tag``: what the words of a text are, or what it is as a whole."""

import sys

from minitransformer.commands.arguments import note
from minitransformer.commands.texts import add_texts, answer
from minitransformer.core.terminal import exact
from minitransformer.inference.labeller import Labeller


def add(parser):
    parser.description = (
        "Say the label of each word of a text, or of the text as a whole, as a tagger has learned "
        "it: a line each, with the label and its probability behind tabs. Between two texts stands "
        "an empty line."
    )
    add_texts(parser, run, "a sentence")


def run(options):
    """Print the labels; returns the exit status."""

    def label(labeller, texts):
        return map(labeller.label, texts)

    return answer(options, Labeller, label, _show, apart=True)


def _show(predictions, number):
    if cut_off := sum(label is None for _, label, _ in predictions):
        note(
            f"text {number} is longer than the model takes; the last {cut_off} words have no label"
        )
    lines = [
        word if label is None else f"{word}\t{label}\t{probability:.3f}"
        for word, label, probability in predictions
    ]
    print("\n".join(lines), file=exact(sys.stdout))
