"""How the time of a training step grows with its batch, its sentences and its model.

    python benchmarks/scaling.py --json FILE

From one point, one thing at a time changes: the tokens of a batch, the length of its sentences, the
width of the model (with four times as wide feed-forward networks) or its depth. Beside the time
stands the number of operations; where the work is all matrix products, both grow alike. The
sentences are random ids without padding, and a round over all points is repeated, so that a slow
moment of the machine does not fall on one of them.
"""

import math
import statistics
import sys
from types import SimpleNamespace

import _options
import _results
import numpy as np
from _flops import batch_flops
from _machine import cores, machine
from _our_side import OurSide
from _settings import Settings
from _workload import Workload

from minitransformer.commands.arguments import positive

PIECES = 8000  # of the vocabulary
POINT = {"batch_tokens": 4096, "length": 16, "d_model": 256, "layers": 3}
AXES = {
    "batch_tokens": (1024, 2048, 4096, 8192, 16384),
    "length": (8, 16, 32, 64, 128),
    "d_model": (128, 256, 384, 512, 768),
    "layers": (1, 2, 3, 6, 12),
}
MEANINGS = {
    "batch_tokens": "tokens of a batch, both languages",
    "length": "tokens of a sentence",
    "d_model": "width of the model",
    "layers": "layers of encoder and of decoder",
}


def main(arguments=None):
    """Measure, print the tables and write the JSON; returns the exit status."""
    options = _parsed(arguments)
    settings = Settings(threads=options.threads or cores(), device=options.device)
    arguments = sys.argv[1:] if arguments is None else arguments
    result = {
        "kind": "scaling",
        **machine(["scaling.py", *arguments]),
        **measure(settings, options.rounds, AXES),
    }
    print(table(result))
    _results.write(result, options.json)
    return 0


def measure(settings, rounds, axes, pieces=PIECES, point=POINT):
    """Time the steps of all points.

    Args:
        settings: Settings.
        rounds: how often to time each point; the median counts.
        axes: the values of each axis, as in AXES.
        pieces: size of the vocabulary.
        point: what the other axes are at.

    Returns:
        dict with, for each axis, a list of points and the exponent of the time in the operations.
    """
    sides = {}
    for axis, values in axes.items():
        for value in values:
            key = tuple((point | {axis: value}).items())
            if key not in sides:  # the axes cross in one point
                sides[key] = OurSide(workload(dict(key), pieces), settings)
    times = {key: [] for key in sides}
    for _ in range(1 + rounds):  # the first one warms up
        for key, side in sides.items():
            times[key].append(side.take_steps([0]))
    result = {"side": next(iter(sides.values())).facts(), "rounds": rounds, "axes": {}}
    for axis, values in axes.items():
        rows = []
        for value in values:
            key = tuple((point | {axis: value}).items())
            flops = batch_flops(sides[key].config, sides[key].batches[0])
            seconds = statistics.median(times[key][1:])
            rows.append({"value": value, "gflop": sum(flops.values()) / 1e9, "seconds": seconds})
        result["axes"][axis] = {"points": rows, "exponent": exponent(rows)}
    return result


def workload(point, pieces):
    """A Workload of one batch of random sentences, all of one length."""
    from minitransformer import TransformerConfig
    from minitransformer.models.transformer import Transformer

    config = TransformerConfig.preset(
        "tiny",
        pieces,
        d_model=point["d_model"],
        d_ff=4 * point["d_model"],
        num_heads=max(1, point["d_model"] // 64),
        num_encoder_layers=point["layers"],
        num_decoder_layers=point["layers"],
    )
    length = point["length"]
    shape = 3, point["batch_tokens"] // (2 * length), length
    source, target, labels = np.random.default_rng(0).integers(4, pieces, shape, dtype=np.int32)
    batch = SimpleNamespace(source=source, target=target, labels=labels, num_tokens=labels.size)
    weights = {path: p.data for path, p in Transformer(config).named_parameters()}
    return Workload("random sentences", config, weights, [batch], padding=0.0)


def exponent(rows):
    """The e of seconds ~ operationsᵉ that fits best: 1 where the time grows as the operations do.

    None where the operations hardly grow, as with the length of sentences in batches of one size.
    """
    if rows[-1]["gflop"] < 2 * rows[0]["gflop"]:
        return None
    x, y = ([math.log(row[name]) for row in rows] for name in ("gflop", "seconds"))
    return statistics.linear_regression(x, y).slope


def table(result):
    """All axes as text."""
    lines = [
        f"{result['cpu']}; {result['side']['blas']}, {result['side']['threads']}",
        "tiny on random sentences of one length, but for what changes",
    ]
    for axis, found in result["axes"].items():
        first = found["points"][0]
        lines += ["", MEANINGS[axis]]
        lines.append("         GFLOP     ms  GFLOP/s  operations     time")
        for row in found["points"]:
            lines.append(
                f"{row['value']:6d} {row['gflop']:7.1f} {1000 * row['seconds']:6.0f} "
                f"{row['gflop'] / row['seconds']:8.1f} {row['gflop'] / first['gflop']:9.2f} x "
                f"{row['seconds'] / first['seconds']:6.2f} x"
            )
        if found["exponent"] is not None:
            lines.append(f"time grows as operations to the power of {found['exponent']:.2f}")
    return "\n".join(lines)


def _parsed(arguments):
    parser = _options.parser(__doc__.splitlines()[0], "--device", "--threads", "--json")
    add = parser.add_argument
    add(
        "--rounds",
        type=positive,
        default=5,
        help="how often each point is timed; the median counts",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    _options.end(main)
