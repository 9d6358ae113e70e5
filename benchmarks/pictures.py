"""Convolutions of pictures and steps of whole networks, beside PyTorch; and how they grow.

    python benchmarks/pictures.py --json FILE

First a convolution, forward and backward for x and weight, at the sizes of the stages of resnet-20,
and a larger one. Then whole steps of the recipes ``resnet-20`` and ``vit``, optimizer included, on
pictures of the corpus ``shapes``, which has the size of Fashion-MNIST. Both sides have the same
first weights and batches, in one process and the same number of threads: ours one a shard, with a
BLAS of one. (So a batch norm of ours sees half a batch where there are two; the gradients are
compared with one shard.) They first show that they agree; then they take turns in blocks of steps,
and who begins changes from block to block. PyTorch has both of its layouts, and the ratio is to the
faster one. Memory is the most that a process of its own ever had for a few steps of a side, its
libraries and batches included: in ours there is no PyTorch, and in PyTorch's no trainer of ours.

Last, how time and memory of a convolution and a max pooling grow with the area of a picture.
"""

import copy
import io
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import _options
import numpy as np
from _growth import exponent, peak
from _machine import note_on_kernels, peak_mb
from _turns import beside, in_words, on, parser, rates, require_same, run, seconds_of
from threadpoolctl import threadpool_limits

from minitransformer import accelerated
from minitransformer.core.backend import CPU
from minitransformer.core.memory import keep_freed_memory
from minitransformer.core.workers import Workers
from minitransformer.layers.convolution_2d import convolution_2d, convolution_2d_backward
from minitransformer.layers.pooling import max_pooling, max_pooling_backward
from minitransformer.training.job import Job
from minitransformer.training.progress import Progress
from minitransformer.training.recipe import Recipe
from minitransformer.training.session import prepare

POINTS = ((128, 28, 16), (128, 14, 32), (128, 7, 64), (32, 28, 64))  # pictures, side, channels
RECIPES = "resnet-20", "vit"
SIDES = 16, 32, 64, 128  # of growing pictures
BATCHES = 8  # of pictures, again and again
LAYOUTS = "default", "channels last"  # of PyTorch


class OurConvolution:
    """Our convolution of 3 × 3, each thread with a part of the pictures.

    Args:
        x, dy: (B, Y, X, C).
        weight: (3, 3, C, C).
        workers: Workers.
    """

    def __init__(self, x, weight, dy, workers):
        self.x, self.weight, self.dy, self.workers = x, weight, dy, workers

    def step(self):
        """Forward and backward; returns dx and dweight."""
        dxs, dweights = zip(
            *self.workers.map(self._of_part, self.workers.ranges(len(self.x))), strict=True
        )
        return dxs, sum(dweights)

    def _of_part(self, part):
        _, cache = convolution_2d(self.x[part], self.weight, padding=1)
        dx, dweight, _ = convolution_2d_backward(self.dy[part], cache)
        return dx, dweight

    def gradients(self):
        dxs, dweight = self.step()
        return {"x": np.concatenate(dxs), "weight": dweight}


class TorchConvolution:
    """PyTorch's with the same numbers, in one of its layouts."""

    def __init__(self, x, weight, dy, layout):
        import torch
        from _torch_pictures import LAYOUTS as FORMATS

        axes = (0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2)
        self.x, self.weight, self.dy = (
            torch.tensor(array.transpose(order)).contiguous(memory_format=FORMATS[layout])
            for array, order in zip((x, weight, dy), axes, strict=True)
        )
        self.x.requires_grad_()
        self.weight.requires_grad_()
        self.conv2d = torch.nn.functional.conv2d

    def step(self):
        """Forward and backward."""
        self.x.grad = self.weight.grad = None
        self.conv2d(self.x, self.weight, padding=1).backward(self.dy)

    def gradients(self):
        """In our layout."""
        self.step()
        return {
            "x": self.x.grad.numpy().transpose(0, 2, 3, 1),
            "weight": self.weight.grad.numpy().transpose(2, 3, 1, 0),
        }


def recipe_of(name):
    """A recipe of the package, of pictures that are drawn and not downloaded."""
    return Recipe.load(name).with_value("corpus", "shapes")


class OurStep:
    """The Trainer of ``minitransformer train``, step by step.

    Args:
        name: of a recipe.
        threads: as many shards.
    """

    def __init__(self, name, threads):
        recipe = recipe_of(name).with_values({"shards": threads, "log_every": 10**9})
        with TemporaryDirectory() as folder:
            job = Job(recipe, Path(folder) / "run", CPU, Progress(io.StringIO()))
            self.trainer = prepare(job)
        self.batches = []
        for batch in self.trainer.task.batches(0):
            self.batches.append(batch)
            if len(self.batches) == BATCHES:
                break
        self.trainer.run = SimpleNamespace(log=[])  # nothing is written between the steps

    def beginning(self):
        """What a TorchStep begins with: both configurations, first weights and batches."""
        model = self.trainer.model
        weights = {path: parameter.data for path, parameter in model.named_parameters()}
        return self.trainer.config, model.config, weights, self.batches

    def take_step(self):
        batch = self.batches[self.trainer.step % len(self.batches)]
        self.trainer.take_step([batch], self.trainer.total_steps)

    def gradients(self):
        """Of the first batch, by the path of each parameter, in float64 and without dropout."""
        model = copy.deepcopy(self.trainer.model).to(dtype=np.float64)
        normed_by_batch = any(model.named_buffers())  # as in training; such a model has no dropout
        rng = np.random.default_rng(0) if normed_by_batch else None
        with accelerated():
            smoothing = self.trainer.config.label_smoothing
            _, cache = model.loss(self.batches[0], rng, smoothing=smoothing)
            model.loss_backward(1.0, cache)
        return {path: parameter.grad for path, parameter in model.named_parameters()}


def main(arguments=None):
    """Measure, print a table and write the JSON; returns the exit status."""
    options = parser(__doc__.splitlines()[0]).parse_args(arguments)
    return run("pictures", options, arguments, measure, table)


def measure(options):
    """Convolutions and steps with each number of threads, and growth, as a dict ready for JSON.

    Raises:
        SystemExit: the two sides do not compute the same.
    """
    import torch

    convolutions, steps = [], []
    for threads in options.threads:
        torch.set_num_threads(threads)
        how = threads, options.blocks, options.block
        with threadpool_limits(1, user_api="blas"):
            convolutions += [of_convolution(*point, *how) for point in POINTS]
            steps += [of_step(recipe, *how) for recipe in RECIPES]
    return {"convolutions": convolutions, "steps": steps, "growth": growth(options.blocks)}


def of_convolution(batch, side, channels, threads, blocks, block):
    """Both sides at one point, PyTorch's in each of its layouts."""
    rng = np.random.default_rng(0)
    x, dy = rng.standard_normal((2, batch, side, side, channels), dtype=np.float32)
    weight = rng.standard_normal((3, 3, channels, channels), dtype=np.float32)
    ours = OurConvolution(x, weight, dy, Workers(threads))
    layouts = {}
    for layout in LAYOUTS:
        theirs = TorchConvolution(x, weight, dy, layout)
        require_same("convolution", ours.gradients(), theirs.gradients())
        layouts[layout] = beside(ours.step, theirs.step, blocks, block)
    return {
        "pictures": batch,
        "side": side,
        "channels": channels,
        "threads": threads,
        "gflop": 3 * 2 * 9 * x.size * channels / 1e9,
        **faster(layouts),
    }


def of_step(recipe, threads, blocks, block):
    """Both sides at the steps of a recipe, PyTorch's in each of its layouts."""
    # Now that it is known that there is a PyTorch.
    from _torch_pictures import TorchStep

    ours = OurStep(recipe, threads)
    beginning, gradients = ours.beginning(), ours.gradients()
    both = {layout: TorchStep(*beginning, layout) for layout in LAYOUTS}
    memory = {
        "our_mb": in_a_process(most_memory, OurStep, recipe, threads),
        "torch_mb": in_a_process(most_memory, torch_step, threads, *beginning),
    }
    for theirs in both.values():
        renamed = theirs.renamed(gradients, ours.trainer.model.config)
        require_same(recipe, renamed, theirs.gradients())
    layouts = {
        layout: beside(ours.take_step, theirs.take_step, blocks, block)
        for layout, theirs in both.items()
    }
    return {
        "recipe": recipe,
        "pictures": len(ours.batches[0].labels),
        "parameters": ours.trainer.model.num_parameters(),
        "threads": threads,
        **memory,
        **faster(layouts),
    }


def faster(layouts):
    """Of the times beside each layout those beside the faster, with its name."""
    name = min(layouts, key=lambda layout: layouts[layout]["torch_seconds"])
    return {"layout": name, **layouts[name]}


def in_a_process(function, *arguments):
    """What the function returns in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(function, *arguments).result()


def torch_step(threads, *beginning):
    """PyTorch's steps, in a process that has not imported it yet."""
    import torch
    from _torch_pictures import TorchStep

    torch.set_num_threads(threads)
    return TorchStep(*beginning, "channels last")


def most_memory(make, *arguments):
    """The most memory, in MB, that this process has had after some steps of what is made."""
    keep_freed_memory()
    side = make(*arguments)
    with threadpool_limits(1, user_api="blas"):
        for _ in range(3):
            side.take_step()
    return peak_mb()


def growth(rounds):
    """Seconds and bytes of a convolution and a pooling, forward and backward, by side."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((3, 3, 16, 16), dtype=np.float32)
    rows = []
    for side in SIDES:
        x = rng.standard_normal((1, side, side, 16), dtype=np.float32)

        def run(x=x):
            y, cache = convolution_2d(x, weight, padding=1)
            pooled, pooling_cache = max_pooling(y, 2)
            convolution_2d_backward(max_pooling_backward(pooled, pooling_cache), cache)

        with threadpool_limits(1, user_api="blas"):
            run()
            times = max(1, max(SIDES) ** 2 // side**2)
            seconds = min(seconds_of(run, times) / times for _ in range(rounds))
        rows.append({"side": side, "seconds": seconds, "bytes": peak(run)})
    areas = [side**2 for side in SIDES]
    exponents = {
        name: exponent(areas, [row[name] for row in rows]) for name in ("seconds", "bytes")
    }
    return {"points": rows, "exponents": exponents}


def table(result):
    """A result as text."""
    lines = [
        on(result),
        "convolution 3 × 3, forward and backward: milliseconds, in brackets GFLOP/s",
        "",
        "pictures  side  channels  threads           ours        PyTorch  ratio",
    ]
    for row in result["convolutions"]:
        lines.append(
            f"{row['pictures']:8} {row['side']:5} {row['channels']:9} {row['threads']:8} "
            f"{rates(row)} {in_words(row)} {row['layout']}"
        )
    lines += ["", "steps: milliseconds, and the most memory in MB", ""]
    lines += ["recipe     pictures  parameters  threads    ours  PyTorch      MB of each  ratio"]
    for row in result["steps"]:
        lines.append(
            f"{row['recipe']:10} {row['pictures']:8} {row['parameters']:11,} {row['threads']:8} "
            f"{1e3 * row['seconds']:7.1f} {1e3 * row['torch_seconds']:8.1f} "
            f"{row['our_mb']:7.0f} {row['torch_mb']:7.0f} {in_words(row)} {row['layout']}"
        )
    lines += ["", "a convolution and a pooling of one picture, by its side", ""]
    for row in result["growth"]["points"]:
        lines.append(f"{row['side']:5} {1e3 * row['seconds']:9.2f} ms {row['bytes'] / 1e6:8.2f} MB")
    exponents = result["growth"]["exponents"]
    lines.append(
        f"grow with the area to the power of {exponents['seconds']:.2f} and "
        f"{exponents['bytes']:.2f}"
    )
    return "\n".join([*lines, *note_on_kernels(result["environment"])])


if __name__ == "__main__":
    _options.end(main)
