"""``minitransformer generate``: a text that goes on as a language model has learned."""

import argparse
import itertools
import sys

from minitransformer.commands.arguments import note, positive
from minitransformer.commands.texts import add_texts, answer
from minitransformer.core.terminal import exact
from minitransformer.inference.generator import TextGenerator


def add(parser):
    parser.description = (
        "Go on with texts, as it comes to the model's mind: each token is drawn by its probability "
        "and shown at once. A text ends where the model ends it, or after --length."
    )
    add_texts(parser, run, "how a text begins, '' to begin a new one")
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


def run(options):
    """Print the texts as ``options`` say; returns the exit status."""
    sampling = dict(temperature=options.temperature, top_k=options.top_k, top_p=options.top_p)

    def go_on(generator, prompts):
        for prompt in prompts:
            if "\n" in prompt and not generator.vocabulary.encode("\n"):
                note(
                    "of subwords a text is one line; the model reads the line breaks of the prompt "
                    "as blanks"
                )
            bits = generator.stream(prompt, options.length, seed=options.seed, **sampling)
            yield itertools.chain([prompt], bits)

    return answer(options, TextGenerator, go_on, _show)


def _show(bits, number):
    out = exact(sys.stdout)
    for bit in bits:
        out.write(bit)
        out.flush()
    print(file=out)


def _seed(text):
    """A whole number, 0 or more."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number, 0 or more")
    return int(text)
