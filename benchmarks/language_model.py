"""A small character model, trained beside the same in PyTorch: loss and time.

    python benchmarks/language_model.py --json FILE

The size is that which nanoGPT's README gives for a CPU: 4 layers, 4 heads, width 128, a context of
64, 12 windows a batch, 2000 steps, no dropout. The text is what Python's own standard library says
of itself, its documentation strings, cut to a million characters: so it depends on the version of
Python. Both sides have the same first weights, batches and learning rates, in one process, each
with the threads that it takes by itself: ours one a shard, PyTorch one a core. First their
gradients show that they agree; then they take turns in blocks of steps, and who begins changes from
block to block.
"""

import ast
import copy
import io
import math
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import _options
import _products
import _results
import numpy as np
from _machine import machine, note_on_kernels, numpy_blas
from _process import require_torch
from _products import of_map, seconds_of_products
from _turns import beside, in_words, require_same

from minitransformer import accelerated
from minitransformer.commands.arguments import positive
from minitransformer.core.backend import CPU
from minitransformer.core.memory import keep_freed_memory
from minitransformer.training.job import Job
from minitransformer.training.progress import Progress
from minitransformer.training.recipe import Recipe
from minitransformer.training.session import prepare

CHARACTERS = 1_000_000
SIZE = dict(d_model=128, num_heads=4, d_ff=512, num_layers=4, max_length=64, dropout=0.0)
TRAINING = dict(batch_tokens=12 * 64, epochs=2, peak_learning_rate=1e-3, warmup_steps=100)
BLOCK = 50  # steps


def standard_library_text(most=CHARACTERS):
    """The documentation strings of the standard library, module after module, as one text."""
    texts, length = [], 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if "site-packages" in path.parts or "test" in path.parts or "tests" in path.parts:
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        found = (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, kinds))
        for text in filter(None, found):
            text = text.encode("ascii", "ignore").decode()
            texts.append(f"{text}\n\n")
            length += len(texts[-1])
        if length >= most:
            break
    return "".join(texts)[:most]


def main(arguments=None):
    """Measure, print a table and write the JSON; returns the exit status."""
    parser = _options.parser(__doc__.splitlines()[0], "--json")
    parser.add_argument(
        "--steps", type=positive, default=2000, help=f"a multiple of {BLOCK} above it"
    )
    options = parser.parse_args(arguments)
    if options.steps % BLOCK or options.steps == BLOCK:
        parser.error(f"--steps: {options.steps} is no multiple of {BLOCK} above it")
    require_torch()
    given = sys.argv[1:] if arguments is None else arguments
    result = {"kind": "language_model", **machine(["language_model.py", *given])}
    result |= {"blas": numpy_blas(), **measure(standard_library_text(), options.steps)}
    print(table(result))
    _results.write(result, options.json)
    return 0


def measure(text, steps):
    """Losses and times of both sides, as a dict.

    Raises:
        SystemExit: the two sides do not compute the same.
    """
    # Now that it is known that there is a PyTorch.
    import torch
    from _torch_language_model import TorchSide, from_our_language_model

    keep_freed_memory()  # as Trainer.train does; here it serves both sides
    with TemporaryDirectory() as folder:
        ours = OurSide(text, Path(folder), steps)
        theirs = TorchSide(ours.trainer, ours.batches, steps)
        our_gradients = from_our_language_model(ours.gradients(), ours.trainer.model.config)
        require_same("language model", our_gradients, theirs.gradients())
        with ours.trainer.workers.one_blas_thread():
            times = beside(ours.take_step, theirs.take_step, steps // BLOCK - 1, BLOCK)
            workers = ours.trainer.workers
            shapes = products(ours.trainer.model.config, ours.batches[0].ids, workers.count)
            times["products_seconds"] = seconds_of_products(shapes, workers)
        validations = ours.validate(), theirs.validate()
    return {
        "characters": len(text),
        "vocabulary": ours.trainer.model.config.vocabulary_size,
        "parameters": ours.trainer.model.num_parameters(),
        "steps": steps,
        "threads": [ours.trainer.workers.count, torch.get_num_threads()],
        **times,
        "losses": [ours.losses, theirs.losses],
        "validation_nll": validations,
    }


def products(config, ids, shards):
    """The products of a shard of a batch, for :func:`seconds_of_products`."""
    rows, length = len(ids) // shards, ids.shape[1]
    D, F, H, V = config.d_model, config.d_ff, config.num_heads, config.vocabulary_size
    tokens, heads = rows * length, rows * H
    layer = of_map(tokens, D, D) * 4 + of_map(tokens, D, F) + of_map(tokens, F, D)
    layer += of_map(heads, length, D // H, length) + of_map(heads, length, length, D // H)
    return layer * config.num_layers + of_map(tokens, D, V)


class OurSide:
    """The Trainer of ``minitransformer train``, step by step."""

    def __init__(self, text, folder, steps):
        (folder / "text.txt").write_text(text, encoding="utf-8")
        recipe = Recipe.load("gpt").with_value("text", str(folder / "text.txt"))
        for name, value in (SIZE | TRAINING | dict(log_every=1)).items():
            recipe = recipe.with_value(name, value)
        self.trainer = prepare(Job(recipe, folder / "run", CPU, Progress(io.StringIO())))
        self.batches = list(self.trainer.task.batches(0))
        self.trainer.run = SimpleNamespace(log=[])  # nothing is written between the steps
        self.steps = steps

    @property
    def losses(self):
        """That of each step."""
        return [entry["loss"] for entry in self.trainer.run.log]

    def take_step(self):
        batch = self.batches[self.trainer.step % len(self.batches)]
        self.trainer.take_step([batch], self.steps)

    def gradients(self):
        """Of the first batch, by the path of each parameter, in float64."""
        model = copy.deepcopy(self.trainer.model).to(dtype=np.float64)
        with accelerated():
            _, cache = model.loss(self.batches[0])
            model.loss_backward(1.0, cache)
        return {path: parameter.grad for path, parameter in model.named_parameters()}

    def validate(self):
        """The NLL of the validation text, in nats a character."""
        return self.trainer.task.validate(self.trainer.model)["nll"]


def table(result):
    """A result as text."""
    ours, theirs = result["losses"]
    tenth = max(1, len(ours) // 10)
    threads = " and ".join(map(str, result["threads"]))
    milliseconds = [1e3 * result[side] for side in ("seconds", "torch_seconds")]
    lines = [
        f"{result['cpu']}, {result['cores']} cores; {result['blas']}, "
        f"torch {result['versions']['torch']}",
        f"{result['characters']:,} characters, {result['vocabulary']} tokens; "
        f"{result['parameters']:,} parameters; threads: {threads}",
        "",
        f"{'steps':12} minitransformer    PyTorch",
    ]
    for first in range(0, len(ours), tenth):
        part = slice(first, first + tenth)
        means = (sum(losses[part]) / len(losses[part]) for losses in (ours, theirs))
        steps = f"{first + 1}-{min(first + tenth, len(ours))}"
        lines.append(f"{steps:12} " + "".join(f"{mean:13.4f}" for mean in means))
    nll = result["validation_nll"]
    lines += [
        f"{'validation':12} " + "".join(f"{value:13.4f}" for value in nll),
        f"{'bits':12} " + "".join(f"{value / math.log(2):13.4f}" for value in nll),
        f"{'ms a step':12} " + "".join(f"{value:13.2f}" for value in milliseconds),
        "",
        f"times as fast {in_words(result)}",
        f"matrix products alone: {_products.in_words(result)}",
    ]
    return "\n".join([*lines, *note_on_kernels(result["environment"])])


if __name__ == "__main__":
    _options.end(main)
