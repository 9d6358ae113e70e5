"""``minitransformer generate``: a text that goes on as a language model has learned."""

import argparse
import sys

from minitransformer.commands.arguments import (
    add_device,
    add_own,
    add_run_folder,
    note_unknown,
    own_functions,
    positive,
    require_task,
    text_of,
)
from minitransformer.core.terminal import exact
from minitransformer.inference.generator import TextGenerator


def add(parser):
    parser.description = (
        "Go on with a text, as it comes to the model's mind: each token is drawn by its "
        "probability and shown at once. It ends where the model ends the text, or after --length."
    )
    add_run_folder(parser)
    parser.add_argument(
        "text",
        nargs="*",
        help="how the text begins; without any, what is piped in, or else a new text is begun",
    )
    parser.add_argument(
        "--length", type=positive, default=200, metavar="N", help="most tokens (default: 200)"
    )
    parser.add_argument(
        "--temperature",
        type=float,
        default=1.0,
        metavar="X",
        help="below 1 the probable gains, above 1 the improbable; 0 takes the most probable token "
        "(default: 1)",
    )
    parser.add_argument(
        "--top-k", type=positive, default=0, metavar="K", help="draw one of the K most probable"
    )
    parser.add_argument(
        "--top-p",
        type=float,
        default=1.0,
        metavar="X",
        help="draw one of the fewest that have the probability X together (default: 1)",
    )
    parser.add_argument("--seed", type=_seed, default=0, metavar="N", help="(default: 0)")
    add_device(parser)
    add_own(parser)
    parser.set_defaults(run=run)


def run(options):
    """Print the text as ``options`` say; returns the exit status."""
    require_task(options.run_folder, "generate")
    with own_functions(options):
        return _run(options)


def _run(options):
    generator = TextGenerator.load(options.run_folder, options.device)
    prompt = text_of(options)
    note_unknown(generator.unknown(prompt))
    if "\n" in prompt and not generator.vocabulary.encode("\n"):
        print(
            "minitransformer: of subwords a text is one line; the model reads the line breaks of "
            "the prompt as blanks",
            file=sys.stderr,
        )
    bits = generator.stream(
        prompt,
        options.length,
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        seed=options.seed,
    )
    out = exact(sys.stdout)
    out.write(prompt)
    for bit in bits:
        out.write(bit)
        out.flush()
    print(file=out)
    return 0


def _seed(text):
    """A whole number, 0 or more."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number, 0 or more")
    return int(text)
