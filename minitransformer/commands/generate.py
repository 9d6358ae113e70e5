"""``minitransformer generate``: a text that goes on as a language model has learned."""

import itertools
import sys

from minitransformer.commands.arguments import add_sampling, positive, sampling
from minitransformer.commands.texts import add_texts, answer
from minitransformer.core.terminal import exact, note
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
    add_sampling(parser, temperature=1.0)


def run(options):
    """Print the texts as ``options`` say; returns the exit status."""

    def go_on(generator, prompts):
        for prompt in prompts:
            if "\n" in prompt and not generator.vocabulary.encode("\n"):
                note(
                    "of subwords a text is one line; the model reads the line breaks of the prompt "
                    "as blanks"
                )
            bits = generator.stream(prompt, options.length, seed=options.seed, **sampling(options))
            yield itertools.chain([prompt], bits)

    return answer(options, TextGenerator, go_on, show_bits)


def show_bits(bits, number):
    """Print a text bit by bit, as it comes."""
    out = exact(sys.stdout)
    for bit in bits:
        out.write(bit)
        out.flush()
    print(file=out)
