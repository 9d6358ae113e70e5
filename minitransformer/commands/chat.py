"""``minitransformer chat``: a conversation with a language model that was trained on some."""

from minitransformer.commands.arguments import add_anyway, add_sampling, positive, sampling
from minitransformer.commands.generate import show_bits
from minitransformer.commands.texts import add_texts, answer
from minitransformer.inference.conversation import Conversation


def add(parser):
    parser.description = (
        "Talk with a language model that was trained on conversations, as import smollm2 brings "
        "one. Each text is a turn, and its answer is shown word by word."
    )
    add_texts(parser, run, "what you say")
    parser.add_argument("--system", metavar="TEXT", help="what it is told at first")
    parser.add_argument(
        "--length", type=positive, default=500, metavar="N", help="most tokens (default: 500)"
    )
    add_sampling(parser, temperature=0.0)
    add_anyway(parser, "speak")


def run(options):
    """Print the answers as ``options`` say; returns the exit status."""

    def answers(conversation, texts):
        for text in texts:
            yield conversation.reply(text, options.length, seed=options.seed, **sampling(options))

    return answer(options, Conversation, answers, show_bits, system=options.system or "")
