"""Two steps of one process that take turns: ours, and PyTorch's with the same numbers."""

import sys
from time import perf_counter

import _options
import _results
from _machine import cores, machine, numpy_blas
from _process import require_torch

from minitransformer import accelerated
from minitransformer.commands.arguments import positive
from minitransformer.core.memory import keep_freed_memory

TOLERANCE = 1e-4  # of two gradients in float32, of the largest entry


def parser(description):
    """An ArgumentParser with the options of a script whose steps take turns."""
    made = _options.parser(description, "--json")
    add = made.add_argument
    add("--threads", type=positive, nargs="*", help="of each side; one, and one for each core")
    add("--blocks", type=positive, default=10, help="turns of each side")
    add("--block", type=positive, default=5, help="steps that a side takes in a row")
    return made


def run(kind, options, arguments, measure, table):
    """Measure, print a table and write the JSON; returns the exit status.

    Args:
        kind: the name of the script.
        options: what its parser has made of ``arguments``; or, where these are None, of those of
            the command line.
        measure: a function of the options that returns the result, a dict.
        table: a function of the whole result that returns it as text.
    """
    require_torch()
    options.threads = options.threads or sorted({1, cores()})
    given = sys.argv[1:] if arguments is None else arguments
    result = {"kind": kind, **machine([f"{kind}.py", *given]), "blas": numpy_blas()}
    keep_freed_memory()  # as Trainer.train does; here it serves both sides
    with accelerated():
        result |= measure(options)
    print(table(result))
    _results.write(result, options.json)
    return 0


def beside(ours, theirs, blocks, block):
    """Times of our step and PyTorch's, ready for JSON; arguments as for :func:`alternate`."""
    seconds = alternate(ours, theirs, blocks, block)
    our_seconds, torch_seconds = (
        sum(side) / (blocks * block) for side in zip(*seconds, strict=True)
    )
    return {
        "seconds": our_seconds,
        "torch_seconds": torch_seconds,
        "ratio": torch_seconds / our_seconds,
        "ratio_of_blocks": [theirs / ours for ours, theirs in seconds],
    }


def require_same(layer, ours, theirs):
    """End the script where a gradient of the layer differs: the speed would mean nothing.

    Args:
        layer: its name.
        ours, theirs: gradients by name; of ours there may be more.
    """
    for name, expected in theirs.items():
        error = abs(ours[name] - expected).max() / abs(expected).max()
        if not error <= TOLERANCE:
            raise SystemExit(
                f"{layer}: the gradient of {name} differs by {error:.1e} of its largest entry, "
                f"and {TOLERANCE:.0e} is allowed"
            )


def on(result):
    """What a result was measured on, the first line of a table."""
    torch = result["versions"]["torch"]
    return f"{result['cpu']}, {result['cores']} cores; {result['blas']}, torch {torch}"


def rates(row):
    """Milliseconds of both sides, each with its GFLOP/s in brackets."""
    seconds = row["seconds"], row["torch_seconds"]
    return "".join(f"{1e3 * side:8.1f} ({row['gflop'] / side:4.0f})" for side in seconds)


def in_words(row):
    """The ratio of :func:`beside`, and those of its blocks."""
    ratios = row["ratio_of_blocks"]
    return f"{row['ratio']:6.2f} (blocks: {min(ratios):.2f} to {max(ratios):.2f})"


def alternate(first, second, blocks, block):
    """Seconds of each block of steps, as [(of first, of second)]; who begins changes.

    Args:
        first, second: the steps, called without arguments.
        blocks: how many turns each has, after one that warms up.
        block: steps that are taken in a row.
    """
    seconds = []
    for i in range(blocks + 1):
        order = (first, second) if i % 2 == 0 else (second, first)
        taken = [seconds_of(step, block) for step in order]
        seconds.append(tuple(taken if i % 2 == 0 else taken[::-1]))
    return seconds[1:]


def seconds_of(step, times=1):
    """How long so many steps take."""
    start = perf_counter()
    for _ in range(times):
        step()
    return perf_counter() - start
