"""How time and memory of restricted attention grow with the length, beside full attention.

    python benchmarks/restricted.py

A step is forward and backward of attention alone, without the linear maps around it, for a sequence
of random queries, keys and values in float32. A round over all lengths is repeated, the two taking
turns, and the fastest step of a length counts: it is the one that other work on the machine
disturbed least. The memory is the most that a step had at once, counted in a step of its own. The
exponent e is that of time (or memory) ~ nᵉ that fits best.
"""

import sys

import _options
import _results
import numpy as np
from _growth import exponent, peak
from _machine import machine, note_on_kernels, numpy_blas
from _turns import seconds_of
from threadpoolctl import threadpool_limits

from minitransformer.commands.arguments import positive
from minitransformer.core.memory import keep_freed_memory
from minitransformer.layers.attention import (
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    split_heads,
)
from minitransformer.layers.restricted_attention import (
    restricted_attention,
    restricted_attention_backward,
)

LENGTHS = (256, 512, 1024, 2048, 4096)
KINDS = ("restricted", "full")


def main(arguments=None):
    """Measure, print a table and write the JSON; returns the exit status."""
    options = _parsed(arguments)
    given = sys.argv[1:] if arguments is None else arguments
    result = {"kind": "restricted", **machine(["restricted.py", *given]), "blas": numpy_blas()}
    result |= {"window": options.window, "width": options.width, "heads": options.heads}
    keep_freed_memory()
    with threadpool_limits(1, user_api="blas"):
        result |= measure(LENGTHS, options.window, options.width, options.heads, options.rounds)
    print(table(result))
    _results.write(result, options.json)
    return 0


def measure(lengths, window, width, heads, rounds):
    """Both kinds at all lengths.

    Returns:
        dict with, for each kind, a list of points and the exponents of time and memory.
    """
    steps = {
        (kind, length): step(kind, length, window, width, heads)
        for length in lengths
        for kind in KINDS
    }
    memory = {key: peak(run) for key, run in steps.items()}  # which warms up, too
    times = {key: [] for key in steps}
    for _ in range(rounds):
        for key, run in steps.items():
            times[key].append(seconds_of(run))
    result = {"rounds": rounds}
    for kind in KINDS:
        points = [
            {"length": n, "seconds": min(times[kind, n]), "bytes": memory[kind, n]} for n in lengths
        ]
        exponents = {
            name: exponent(lengths, [point[name] for point in points])
            for name in ("seconds", "bytes")
        }
        result[kind] = {"points": points, "exponents": exponents}
    return result


def step(kind, length, window, width, heads):
    """A function that takes one step."""
    query, key, value, dy = np.random.default_rng(0).standard_normal(
        (4, 1, length, width), dtype=np.float32
    )

    def restricted():
        _, cache = restricted_attention(query, key, value, heads, window)
        restricted_attention_backward(dy, cache)

    def full():
        _, cache = scaled_dot_product_attention(
            *(split_heads(x, heads) for x in (query, key, value))
        )
        scaled_dot_product_attention_backward(split_heads(dy, heads), cache)

    return restricted if kind == "restricted" else full


def table(result):
    """A result as text."""
    restricted, full = (result[kind]["points"] for kind in KINDS)
    lines = [
        f"{result['cpu']}; {result['blas']}, one thread",
        f"window {result['window']}, {result['width']} features in {result['heads']} heads",
        "",
        "     n   restricted       full     restricted       full",
    ]
    for ours, theirs in zip(restricted, full, strict=True):
        lines.append(
            f"{ours['length']:6} {1e3 * ours['seconds']:9.1f} ms {1e3 * theirs['seconds']:7.1f} ms "
            f"{ours['bytes'] / 1e6:11.1f} MB {theirs['bytes'] / 1e6:7.1f} MB"
        )
    exponents = [result[kind]["exponents"][name] for name in ("seconds", "bytes") for kind in KINDS]
    ours, theirs, our_bytes, their_bytes = (f"n^{value:.2f}" for value in exponents)
    lines.append(f"grows as {ours:>10} {theirs:>10} {our_bytes:>14} {their_bytes:>10}")
    return "\n".join([*lines, *note_on_kernels(result["environment"])])


def _parsed(arguments):
    parser = _options.parser(__doc__.splitlines()[0], "--json")
    add = parser.add_argument
    add("--window", type=positive, default=16, help="how far a query sees to either side, r")
    add("--width", type=positive, default=128, help="of queries, keys and values, D")
    add("--heads", type=positive, default=2, help="H, a divisor of the width")
    add(
        "--rounds",
        type=positive,
        default=5,
        help="how often each length is timed; the fastest counts",
    )
    options = parser.parse_args(arguments)
    if options.width % options.heads:
        parser.error(f"--heads: {options.heads} is no divisor of the width, {options.width}")
    return options


if __name__ == "__main__":
    _options.end(main)
