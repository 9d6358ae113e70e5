"""Table 3 of the paper at a size that two cores can train, and what is not in it.

    python benchmarks/table_3.py --data-dir DIR

Each row is the base model with one thing other, trained on Multi30k for as many steps. The letters
are those of the paper: (A) heads, (B) the width of keys, here of values, too, (C) sizes, (D) what
regularizes, (E) learned positions; then how the embeddings are tied; and what the paper has no rows
for: a Transformer without one of its parts, with the norm before the sublayers, BPE-dropout, and
the mean of the last epochs.

Rows and seeds are as ``_claims.py`` says. Scored are the parameters that the training chose: the
perplexity of a piece and BLEU on what is held out, greedily; and BLEU on the test set with a beam
of 4 and an alpha of 0.6. Of the base model, with each label smoothing, other searches are scored,
too, on what is held out.
"""

import math
import sys
from pathlib import Path

import _ablations
import _options
from _claims import Claim, add_claim, measured, validations
from _claims import table as rows_as_table
from _machine import machine, numpy_blas
from _tables import markdown
from _trained import settings_of

from minitransformer.commands.arguments import new_file
from minitransformer.core.twins import accelerated
from minitransformer.evaluation.scores import score
from minitransformer.evaluation.tables import spread
from minitransformer.inference.translator import Translator
from minitransformer.tasks.splits import TEST_SPLITS, load_split
from minitransformer.training.recipe import Recipe
from minitransformer.training.session import validated

BASE = "base"
SIZES = dict(d_model=128, num_heads=4, d_ff=512, num_encoder_layers=2, num_decoder_layers=2)
CHOICES = dict(dropout=0.1, attention_dropout=0.0, feed_forward_dropout=0.0, norm="post")
TRAINING = dict(batch_tokens=2048, epochs=3, peak_learning_rate=2e-3, warmup_steps=200, average=1)
COMMON = {"kind": _ablations.AblatedConfig.kind, "vocabulary_size": 4000}
COMMON |= SIZES | CHOICES | TRAINING
ROWS = {
    BASE: {},
    "(A) 1 head of 128": dict(num_heads=1),
    "(A) 2 heads of 64": dict(num_heads=2),
    "(A) 8 heads of 16": dict(num_heads=8),
    "(A) 16 heads of 8": dict(num_heads=16),
    "(B) d_k = 8": dict(d_k=8),
    "(B) d_k = 16": dict(d_k=16),
    "(B) d_v = 8": dict(d_v=8),
    "(C) 1 + 1 layers": dict(num_encoder_layers=1, num_decoder_layers=1),
    "(C) 4 + 4 layers": dict(num_encoder_layers=4, num_decoder_layers=4),
    "(C) d_model = 64": dict(d_model=64),
    "(C) d_model = 256": dict(d_model=256),
    "(C) d_ff = 128": dict(d_ff=128),
    "(C) d_ff = 1024": dict(d_ff=1024),
    "(D) no dropout": dict(dropout=0.0),
    "(D) dropout 0.2": dict(dropout=0.2),
    "(D) no label smoothing": dict(label_smoothing=0.0),
    "(D) label smoothing 0.2": dict(label_smoothing=0.2),
    "(E) learned positions": dict(positions="learned"),
    "no positions": dict(positions="none"),
    "two matrices": dict(tying="two-way"),
    "three matrices": dict(tying="none"),
    "no feed-forward networks": dict(feed_forward=False),
    "no residual connections": dict(residual=False),
    "no layer norm": dict(layer_norm=False),
    "norm before the sublayer": dict(norm="pre"),
    "… and no residual connections": dict(norm="pre", residual=False),
    "BPE-dropout 0.1": dict(subword_dropout=0.1),
    "mean of the last 3 epochs": dict(average=3),
}
SEARCHES = {
    "greedy": dict(beam_size=1),
    **{f"beam {k}": dict(beam_size=k, alpha=0.0) for k in (2, 4, 8)},
    **{f"beam 4, alpha {alpha}": dict(beam_size=4, alpha=alpha) for alpha in (0.6, 1.0, 1.5)},
}
TEST = dict(beam_size=4, alpha=0.6)
RESULTS = Path(__file__).parent / "results"


def main(arguments=None):
    """Train, score, and write the JSON file; returns the exit status."""
    options = _parsed(arguments)
    command = ["table_3.py", *(sys.argv[1:] if arguments is None else arguments)]
    about = {"kind": "table_3", **machine(command), "blas": numpy_blas()}
    with _ablations.known():
        print(table(measured(CLAIM, options, options.runs, about)))
    return 0


def scores(run):
    """Of a RunFolder: perplexity of a piece, BLEU, and the searches, where they are compared."""
    recipe = Recipe.of_run(run)
    with accelerated(True):
        held_out, _, _ = validated(run, recipe, "cpu")
    translator = Translator.load(run.path, "cpu")
    test = load_split(recipe.data, TEST_SPLITS[recipe.data.corpus])
    found = {
        "held_out": [entry["bleu"] for entry in validations(run)],
        "perplexity": {"held out": math.exp(held_out["nll"])},
        "BLEU": {"held out": held_out["bleu"], "test": _bleu(translator, test, TEST)},
    }
    if settings_of(recipe.with_value("label_smoothing", 0.1)) == settings_of(CLAIM.recipe_of(BASE)):
        pairs = load_split(recipe.data, "validation")
        found["searches"] = {n: _bleu(translator, pairs, how) for n, how in SEARCHES.items()}
    return found


def _bleu(translator, pairs, how):
    sources, references = zip(*pairs, strict=True)
    return score(translator.translate(list(sources), **how), list(references)).bleu_cased_13a


CLAIM = Claim("multi30k-quick", COMMON, ROWS, scores)


def table(result):
    """The rows, and the searches of those that have some, as Markdown tables."""
    searched = [row for row in result["rows"] if any("searches" in s for s in row["seeds"])]
    lines = [("BLEU, held out", *(row["row"] for row in searched))]
    lines.append(("---", *("---:" for _ in searched)))
    for name in SEARCHES if searched else ():
        cells = ([s["searches"][name] for s in row["seeds"] if "searches" in s] for row in searched)
        lines.append((name, *(spread(values, 1) for values in cells)))
    return "\n\n".join([rows_as_table(result), *([markdown(lines)] if searched else [])])


def _parsed(arguments):
    parser = _options.parser(__doc__.splitlines()[0])
    add_claim(parser, "table-3")
    parser.add_argument(
        "--json", type=new_file, default=RESULTS / "table_3.json", help="the result"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    _options.end(main)
