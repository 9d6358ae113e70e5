"""What a training step would cost on eight GPUs, or on 64 machines: predictions of a model.

    python benchmarks/many_machines.py --json FILE

Measured here are steps of the paper's models in one process, on batches of 4096 tokens; and, by
``processes.py``, what it costs processes to add up gradients, whose result this script reads. All
else is assumed: see ASSUMED; and that a token takes as long in a small batch as in a large one, and
that a GPU never waits for its host. The model is that of ``_cost.py``. Weak efficiency is that of
many processes with a batch each, strong efficiency that of the paper's batch, cut up.
"""

import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import _options
import _reductions
import _results
import numpy as np
from _cost import Link, Step, Traffic, strong_efficiency, traffic, weak_efficiency
from _flops import batch_flops
from _machine import cores, machine
from _our_side import OurSide, update_seconds
from _settings import Settings
from _workload import Workload

from minitransformer.commands.arguments import positive

MODELS = "base", "big"
PIECES = 37_000  # of the vocabulary, section 5.1
PAPER_BATCH = 50_000  # tokens, 25,000 of each language, section 5.1
TOKENS, LENGTH = 4096, 32  # of a batch, both languages, and of a sentence
MACHINES, GPUS = 64, 8  # in a machine
UPDATE_BYTES = 32  # a parameter: the gradient is read twice; three arrays are read and written

ASSUMED = {  # what was not measured here: a number, its unit, and what it is and where it is from
    "float32": (67, 1e12, "TFLOP/s of an H100 SXM in float32, by its datasheet"),
    "tf32": (494.7, 1e12, "TFLOP/s of its tensor cores in TF32, by its datasheet, not sparse"),
    "share": (40, 0.01, "% of either is what a step reaches, a guess"),
    "memory": (3.35, 1e12, "TB/s of its memory, by its datasheet"),
    "nvlink": (370, 1e9, "GB/s that NCCL gets of NVLink's 450, by issue 212 of NVIDIA/nccl-tests"),
    "gpu_network": (400, 1e9, "Gbit/s of a network card for each GPU, as a DGX H100 has them"),
    "gpu_latency": (10, 1e-6, "µs a message between GPUs, a guess"),
    "network_latency": (50, 1e-6, "µs a message between machines without GPUs, a guess"),
    "network_share": (80, 0.01, "% of a network's bits are gradients, a guess"),
}
NETWORKS = 10e9, 25e9  # bit/s between machines without GPUs


class Setting(NamedTuple):
    """Processes on some hardware.

    Attributes:
        name: of the hardware.
        precision: of a GPU's products; None for processors like the one measured.
        processes: how many.
        sums: the order of the shards, or any.
        reduction: function from a gradient's bytes, and how many times as fast the assumed links
            are, to seconds.
    """

    name: str
    precision: str | None
    processes: int
    sums: str
    reduction: Callable


class Prediction(NamedTuple):
    """What the model says of a step with 4096 tokens a process.

    Attributes:
        weak, weak_half, weak_twice: efficiency; with links of half and of twice the bandwidth.
        strong: efficiency, of a step with the paper's batch.
    """

    setting: Setting
    model: str
    step: Step
    weak: float
    weak_half: float
    weak_twice: float
    strong: float


def measure(name, settings, rounds, pieces=PIECES, tokens=TOKENS):
    """Steps of one process, as a dict.

    Args:
        name: of a preset of TransformerConfig.
        settings: Settings.
        rounds: steps, after one that warms up; the median counts.
        pieces: size of the vocabulary.
        tokens: of the batch, in random sentences of 32.
    """
    side = OurSide(_workload(name, pieces, tokens), settings)
    turns = []
    for _ in range(1 + rounds):
        turns.append((side.take_steps([0]), update_seconds(side.trainer)))
    seconds, update = (statistics.median(values) for values in zip(*turns[1:], strict=True))
    return {
        "parameters": side.trainer.model.flat.grad.size,
        "gflop": sum(batch_flops(side.config, side.batches[0]).values()) / 1e9,
        "seconds": seconds,
        "update": update,
    }


def _workload(name, pieces, tokens):
    from minitransformer import TransformerConfig
    from minitransformer.models.transformer import Transformer

    config = TransformerConfig.preset(name, pieces)
    shape = 3, tokens // (2 * LENGTH), LENGTH
    source, target, labels = np.random.default_rng(0).integers(4, pieces, shape, dtype=np.int32)
    batch = SimpleNamespace(source=source, target=target, labels=labels, num_tokens=labels.size)
    weights = {path: p.data for path, p in Transformer(config).named_parameters()}
    return Workload("random sentences", config, weights, [batch], padding=0.0)


def settings_of(result):
    """All that is predicted, a list of Settings.

    Args:
        result: of this script.
    """
    found = []
    for precision in ("float32", "tf32"):
        found.append(Setting(f"{GPUS} GPUs", precision, GPUS, "either", _within))
    for bits in NETWORKS:
        for sums, shards in (("ordered", result["threads"]), ("MPI's", 1)):
            name = f"{MACHINES} machines, {bits / 1e9:.0f} Gbit/s"
            here = Link(**result["links"][sums])
            found.append(Setting(name, None, MACHINES, sums, _between(bits, here, shards)))
    for precision in ("float32", "tf32"):
        for sums, reduction in (("ordered", _all_to_all), ("NCCL's", _in_two_levels)):
            name, count = f"{MACHINES} machines of {GPUS} GPUs", MACHINES * GPUS
            found.append(Setting(name, precision, count, sums, reduction))
    return found


def _between(bits, here, shards):
    """Machines without GPUs: what was measured in one, and then the network."""

    def seconds(size, times):
        network = _network("network_latency", bits, times)
        return network.behind(here).seconds(traffic(MACHINES, size, shards))

    return seconds


def _within(size, times):
    """GPUs of one machine."""
    return _nvlink(times).seconds(traffic(GPUS, size))


def _in_two_levels(size, times):
    """Sums within each machine, of which each GPU then adds up its part with those elsewhere."""
    network = _network("gpu_latency", _assumed("gpu_network"), times)
    return _within(size, times) + network.seconds(traffic(MACHINES, size / GPUS))


def _all_to_all(size, times):
    """Each GPU of all machines sends each other one its part."""
    inside, outside = (
        traffic(count, size * count / (MACHINES * GPUS)) for count in (GPUS, MACHINES * GPUS)
    )
    network = _network("gpu_latency", _assumed("gpu_network"), times)
    rest = Traffic(outside.messages - inside.messages, outside.bytes - inside.bytes)
    return _nvlink(times).seconds(inside) + network.seconds(rest)


def _nvlink(times):
    return Link(_assumed("gpu_latency"), times * _assumed("nvlink"))


def _network(latency, bits, times):
    return Link(_assumed(latency), times * _assumed("network_share") * bits / 8)


def _assumed(name):
    number, unit, _ = ASSUMED[name]
    return number * unit


def predictions(result):
    """All Predictions, a list.

    Args:
        result: of this script.
    """
    found = []
    for setting in settings_of(result):
        for model, measured in result["models"].items():
            compute, update = _alone(measured, setting.precision)
            size, count = 4 * measured["parameters"], setting.processes
            alone = Step(compute, 0.0, update)
            half, step, twice = (
                Step(compute, setting.reduction(size, times), update) for times in (0.5, 1.0, 2.0)
            )
            work = PAPER_BATCH / TOKENS * compute
            part = Step(work / count, step.reduction, update)
            found.append(
                Prediction(
                    setting=setting,
                    model=model,
                    step=step,
                    weak=weak_efficiency(alone, step),
                    weak_half=weak_efficiency(alone, half),
                    weak_twice=weak_efficiency(alone, twice),
                    strong=strong_efficiency(Step(work, 0.0, update), part, count),
                )
            )
    return found


def _alone(measured, precision):
    """Seconds of forward and backward, and of the update, in one process."""
    if precision is None:
        return measured["seconds"] - measured["update"], measured["update"]
    compute = 1e9 * measured["gflop"] / (_assumed("share") * _assumed(precision))
    return compute, UPDATE_BYTES * measured["parameters"] / _assumed("memory")


def assumptions():
    """A line for each."""
    return [f"{number:g} {meaning}" for number, _, meaning in ASSUMED.values()]


def table(result):
    """What was measured, what is assumed and what is predicted, as text."""
    lines = [
        f"{result['cpu']}; {result['threads']} threads, batches of {TOKENS} tokens",
        "",
        "measured, in one process",
        "model  parameters  GFLOP   ms a step  of which update",
    ]
    for model, row in result["models"].items():
        lines.append(
            f"{model:5s} {row['parameters']:11,d} {row['gflop']:6.0f} "
            f"{1000 * row['seconds']:11.0f} {1000 * row['update']:16.0f}"
        )
    for sums, link in result["links"].items():
        lines.append(
            f"sums, {sums}: {1e6 * link['latency']:.0f} µs a message, "
            f"{link['bandwidth'] / 1e9:.2f} GB/s"
        )
    lines += ["", "assumed"]
    lines += assumptions()
    lines += [
        "",
        "predicted: ms a step; efficiency; the share of a step that overlap would save at most",
        f"{'':39s}           reduc-                 bandwidth",
        f"{'hardware':30s} {'sums':8s} model    tion    step  weak   / 2   x 2 strong  overlap",
    ]
    for p in predictions(result):
        name = f"{p.setting.name} {p.setting.precision or ''}"
        lines.append(
            f"{name:30s} {p.setting.sums:8s} {p.model:5s} {1000 * p.step.reduction:7.1f} "
            f"{1000 * p.step.seconds:7.1f} {p.weak:5.0%} {p.weak_half:5.0%} {p.weak_twice:5.0%} "
            f"{p.strong:6.0%} {p.step.overlap_saves_at_most() / p.step.seconds:8.0%}"
        )
    return "\n".join(lines)


def main(arguments=None):
    """Measure, print the tables and write the JSON; returns the exit status."""
    options = _parsed(arguments)
    settings = Settings(threads=options.threads or cores())
    arguments = sys.argv[1:] if arguments is None else arguments
    reductions = json.loads(options.processes.read_text(encoding="utf-8"))["reductions"]
    links = _reductions.largest(reductions)
    result = {
        "kind": "many_machines",
        **machine(["many_machines.py", *arguments]),
        "threads": settings.threads,
        "links": {
            _reductions.order({"ordered_sums": ordered}): vars(link)
            for ordered, link in links.items()
        },
        "models": {name: measure(name, settings, options.rounds) for name in MODELS},
    }
    _results.write(result, options.json)
    print(table(result))
    return 0


def _parsed(arguments):
    parser = _options.parser(__doc__.splitlines()[0], "--threads", "--json")
    here = Path(__file__).parent / "results" / "processes.json"
    add = parser.add_argument
    add(
        "--processes", type=Path, default=here, metavar="FILE", help="what processes.py has written"
    )
    add("--rounds", type=positive, default=3, help="steps of each model; the median counts")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    _options.end(main)
