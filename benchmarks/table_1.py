"""Table 1 of the paper, measured: what layers cost that bring positions together.

    python benchmarks/table_1.py --json FILE

Self-attention, a recurrent layer, a convolution and restricted self-attention, each once forward
and backward over a sequence of n positions of width d, as the package computes them:

operations   of the forward pass, counted call by call (_counting.py), with exponents of n and d
seconds      forward and backward, on one thread; the rounds go over all layers in turn
chain        calls of the forward pass that have to wait for each other: how many more for each
             position
path         layers, or steps of a recurrent layer, until y at one end is another one if x at the
             other end is
memory       the most that forward and backward hold at a time

The paper counts what brings positions together and not the projections around it, which attention
needs as much: so multi-head attention with its projections stands beside.
"""

import math
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass

import _options
import _results
import numpy as np
from _counting import CountingMachine
from _growth import exponent, peak
from _machine import machine
from _turns import seconds_of

from minitransformer.commands.arguments import positive
from minitransformer.core.blas_threads import ONE_BLAS_THREAD
from minitransformer.layers.attention import (
    multi_head_attention,
    multi_head_attention_backward,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)
from minitransformer.layers.convolution import convolution, convolution_backward
from minitransformer.layers.elman import elman, elman_backward
from minitransformer.layers.recurrence import first_state
from minitransformer.layers.restricted_attention import (
    restricted_attention,
    restricted_attention_backward,
)

WIDTH, WINDOW, HEADS = 3, 8, 4  # k and r of the paper; heads of the attention with projections
GRID = {
    "n": {"at": {"d": 64}, "values": (64, 128, 256, 512, 1024)},
    "d": {"at": {"n": 128}, "values": (64, 128, 256, 512)},
}
CROSSINGS = (64, 128, 256)  # widths at which attention and recurrence are compared
PATH = 41  # positions: as far as dilations of 1, 3, 9 and 27 reach to one side, and itself


@dataclass(frozen=True)
class Layer:
    """A layer over sequences.

    Attributes:
        paper: operations, sequential operations and maximum path length, as in the paper.
        weights: shapes of what is multiplied with, from d.
        forward: ``forward(x, *weights)`` with x (B, n, d) to y of the same shape, and a cache.
        backward: what undoes it, from dy and the cache.
    """

    paper: tuple[str, str, str]
    weights: Callable
    forward: Callable
    backward: Callable


def _recurrent(x, *weights):
    (y, _), cache = elman(x, first_state(x, x.shape[-1]), *weights)
    return y, cache


LAYERS = {
    "self-attention": Layer(
        ("n² d", "1", "1"),
        lambda d: [],
        lambda x: scaled_dot_product_attention(x, x, x),
        scaled_dot_product_attention_backward,
    ),
    "recurrent": Layer(
        ("n d²", "n", "n"),
        lambda d: [(d, d), (d, d), (d,)],
        _recurrent,
        lambda dy, cache: elman_backward((dy, None), cache),
    ),
    "convolution": Layer(
        ("k n d²", "1", "n / k; dilated log_k n"),
        lambda d: [(WIDTH, d, d), (d,)],
        convolution,
        convolution_backward,
    ),
    "restricted": Layer(
        ("r n d", "1", "n / r"),
        lambda d: [],
        lambda x: restricted_attention(x, x, x, 1, WINDOW),
        restricted_attention_backward,
    ),
    "multi-head": Layer(
        ("n² d + n d²", "1", "1"),
        lambda d: [(d, d)] * 4,
        lambda x, *weights: multi_head_attention(x, x, x, *weights, HEADS),
        multi_head_attention_backward,
    ),
}


def main(arguments=None):
    """Measure, print the tables and write the JSON; returns the exit status."""
    parser = _options.parser(__doc__.splitlines()[0], "--json")
    parser.add_argument(
        "--rounds", type=positive, default=5, help="timings of each; the median counts"
    )
    options = parser.parse_args(arguments)
    arguments = sys.argv[1:] if arguments is None else arguments
    with ONE_BLAS_THREAD:
        measured = measure(GRID, options.rounds, CROSSINGS, PATH)
    result = {"kind": "table_1", **machine(["table_1.py", *arguments]), **measured}
    print(table(result))
    _results.write(result, options.json)
    return 0


def measure(grid, rounds, crossings, path):
    """All of Table 1, as a dict; arguments as GRID, the option, CROSSINGS and PATH."""
    result = {"grid": grid, "layers": {}}
    timed = {axis: seconds(axis, setting, rounds) for axis, setting in grid.items()}
    for name, layer in LAYERS.items():
        found = result["layers"][name] = {"paper": layer.paper}
        for axis, setting in grid.items():
            points = [{**setting["at"], axis: value} for value in setting["values"]]
            columns = {
                "operations": [counted(layer, **point)[0] for point in points],
                "seconds": timed[axis][name],
                "memory": [memory(layer, **point) for point in points],
            }
            exponents = {what: exponent(setting["values"], c) for what, c in columns.items()}
            found[axis] = {**columns, "exponents": exponents}
        short, long = (counted(layer, n, d=8)[1] for n in (path, 2 * path))
        found["chain"] = {"first": short, "for each position": (long - short) / path}
    result["paths"] = paths(path)
    result["crossings"] = {d: crossing(d, rounds) for d in crossings}
    return result


def inputs(layer, n, d, dtype=np.float64):
    """x (1, n, d), small, and orthogonal weights: a recurrent layer hands on what it was told."""
    rng = np.random.default_rng(n * d)
    x = 0.1 * rng.standard_normal((1, n, d))
    weights = [rng.standard_normal(shape) for shape in layer.weights(d)]
    weights = [np.linalg.qr(w)[0] if w.ndim > 1 else 0.1 * w for w in weights]
    return x.astype(dtype), [weight.astype(dtype) for weight in weights]


def counted(layer, n, d):
    """Operations of a forward pass over one sequence, and the longest chain of calls in it."""
    counting = CountingMachine()
    x, weights = inputs(layer, n, d)
    layer.forward(counting.asarray(x), *map(counting.asarray, weights))
    return counting.operations, counting.chain


def seconds(axis, setting, rounds):
    """Median seconds of forward and backward at each point of an axis, by layer."""
    times = {(name, value): [] for name in LAYERS for value in setting["values"]}
    for _ in range(1 + rounds):  # the first one warms up
        for name, value in times:
            x, weights = inputs(LAYERS[name], **{**setting["at"], axis: value}, dtype=np.float32)
            times[name, value].append(seconds_of(_both_ways(LAYERS[name], x, weights)))
    return {
        name: [statistics.median(times[name, value][1:]) for value in setting["values"]]
        for name in LAYERS
    }


def _both_ways(layer, x, weights):
    """A function that goes forward and backward."""

    def run():
        y, cache = layer.forward(x, *weights)
        layer.backward(y, cache)

    return run


def memory(layer, n, d):
    """The most bytes that forward and backward hold at a time, input and weights aside."""
    return peak(_both_ways(layer, *inputs(layer, n, d, dtype=np.float32)))


def paths(n):
    """Layers, or steps, after which y at the end depends on x at the beginning, by layer."""
    found = {}
    for name, layer in LAYERS.items():
        if name == "recurrent":
            found[name] = steps_apart(layer, n)
        else:
            found[name] = layers_apart(lambda x, w, _, f=layer.forward: f(x, *w)[0], layer, n, n)
    dilated = lambda x, w, depth: convolution(x, *w, dilation=WIDTH**depth)[0]  # noqa: E731
    most = math.ceil(math.log(n, WIDTH))  # beyond that a tap lies outside of the sequence
    found["dilated"] = layers_apart(dilated, LAYERS["convolution"], n, most)
    return found


def layers_apart(forward, layer, n, most):
    """How many layers until y_{n−1} is another one if x_0 is; None if ``most`` do not reach it."""
    x, weights = inputs(layer, n, d=4)
    changed = x.copy()
    changed[:, 0] += 1.0
    for depth in range(most):
        x, changed = (forward(value, weights, depth) for value in (x, changed))
        if not np.array_equal(x[:, -1], changed[:, -1]):
            return depth + 1
    return None


def steps_apart(layer, n):
    """How many steps of a recurrent layer a change of x_0 goes through to y_{n−1}, itself too."""
    x, weights = inputs(layer, n, d=4)
    changed = x.copy()
    changed[:, 0] += 1.0
    states = [layer.forward(value, *weights)[0] for value in (x, changed)]
    different = [not np.array_equal(*pair) for pair in zip(*(y[0] for y in states), strict=True)]
    assert all(different), "a state between them does not pass it on"
    return len(different)


def crossing(d, rounds):
    """The n from which on self-attention takes more than a recurrent layer, in two currencies."""
    grid = [d // 4 * factor for factor in (1, 2, 4, 8, 16)]
    pair = LAYERS["self-attention"], LAYERS["recurrent"]
    operations = [[counted(layer, n, d)[0] for n in grid] for layer in pair]
    timed = seconds("n", {"at": {"d": d}, "values": grid}, rounds)
    clock = [timed["self-attention"], timed["recurrent"]]
    return {"operations": crosses(grid, *operations), "seconds": crosses(grid, *clock)}


def crosses(grid, rising, other):
    """Where ``rising`` overtakes ``other``, between two points on straight lines of logarithms.

    None where it does not within the grid.
    """
    gap = [math.log(a / b) for a, b in zip(rising, other, strict=True)]
    for i in range(1, len(grid)):
        if gap[i - 1] < 0 <= gap[i]:
            part = gap[i - 1] / (gap[i - 1] - gap[i])
            return grid[i - 1] * (grid[i] / grid[i - 1]) ** part
    return None


def table(result):
    """All as text."""
    lines = [f"{result['cpu']}; one thread; k = {WIDTH}, r = {WINDOW}", ""]
    for axis, setting in result["grid"].items():
        where = ", ".join(f"{name} = {value}" for name, value in setting["at"].items())
        values = setting["values"]
        lines.append(f"exponents of {axis}, from {values[0]} to {values[-1]}, at {where}")
        lines.append(f"{'layer':<16}{'paper':<14}{'operations':>11}{'seconds':>9}{'memory':>9}")
        for name, found in result["layers"].items():
            e = found[axis]["exponents"]
            lines.append(
                f"{name:<16}{found['paper'][0]:<14}{e['operations']:>11.2f}"
                f"{e['seconds']:>9.2f}{e['memory']:>9.2f}"
            )
        lines.append("")
    lines.append("calls that wait for each other, and the path from one end to the other")
    lines.append(f"{'layer':<16}{'paper':<8}{'calls a position':>17}   {'paper':<24}{'path':>5}")
    for name, found in result["layers"].items():
        _, sequential, path = found["paper"]
        calls = found["chain"]["for each position"]
        lines.append(
            f"{name:<16}{sequential:<8}{calls:>17.1f}   {path:<24}{result['paths'][name]:>5}"
        )
    lines.append(f"{'dilated':<16}{'':<52}{result['paths']['dilated']:>5}")
    lines.append("")
    lines.append("n from which self-attention takes more than a recurrent layer")
    lines.append("   d  operations  seconds")
    for d, found in result["crossings"].items():
        cells = (f"{n:.0f}" if n else "beyond" for n in (found["operations"], found["seconds"]))
        lines.append(f"{d:>4}  {{:>10}}  {{:>7}}".format(*cells))
    return "\n".join(lines)


if __name__ == "__main__":
    _options.end(main)
