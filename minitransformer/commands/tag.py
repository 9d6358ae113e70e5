"""``minitransformer tag``: what the words of a text are, or what it is as a whole."""

import sys

from minitransformer.commands.arguments import (
    add_device,
    add_run_folder,
    note_unknown,
    require_task,
)
from minitransformer.core.terminal import exact
from minitransformer.inference.labeller import Labeller


def add(parser):
    parser.description = (
        "Say the label of each word of a text, or of the text as a whole, as a tagger has learned "
        "it: a line each, with the label and its probability behind tabs."
    )
    add_run_folder(parser)
    parser.add_argument("text", nargs="+", help="one sentence; it needs no quotes")
    add_device(parser)
    parser.set_defaults(run=run)


def run(options):
    """Print the labels; returns the exit status."""
    require_task(options.run_folder, "tag")
    labeller = Labeller.load(options.run_folder, options.device)
    text = " ".join(options.text)
    said = labeller.label(text)
    note_unknown(labeller.unknown(text))
    cut_off = sum(label is None for _, label, _ in said)
    if cut_off:
        print(
            f"minitransformer: the text is longer than the model takes; the last {cut_off} words "
            "have no label",
            file=sys.stderr,
        )
    for word, label, probability in said:
        says = "" if label is None else f"\t{label}\t{probability:.3f}"
        print(f"{word}{says}", file=exact(sys.stdout))
    return 0
