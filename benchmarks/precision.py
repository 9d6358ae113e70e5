"""What does it cost a training that matrix products round what they multiply?

    python benchmarks/precision.py --data-dir DIR --json FILE --plot FILE.png

Tensor cores multiply entries of fewer bits, and add the products up in float32. The same model is
trained in each precision from the same weights, on the same batches, with the same dropout masks,
so that losses of two runs differ by the rounding alone. But any change, however small, grows as
training goes on: beside the precisions stands a control that drops the last of float32's 24 bits.

On a GPU the products are those of ``matmul_precision``. On a CPU they are imitated: each matrix
product of the readable functions is given rounded entries. That says nothing about speed.
"""

import json
import sys
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import _options
import numpy as np
from _machine import cores, machine
from _our_side import OurSide
from _settings import Settings
from _workload import make_workload
from loss_curve import WINDOW, windows

SEEDS = (1, 2)
CONTROL = "23 bits"


def main(arguments=None):
    """Train in each precision, compare, print and write; returns the exit status."""
    options = _parsed(arguments)
    workload = make_workload(
        options.config, options.data_dir, batch_tokens=options.batch_tokens, count=options.steps
    )
    settings = Settings(
        threads=options.threads or cores(),
        device=options.device,
        accelerate=options.device != "cpu",
        peak_learning_rate=options.peak_learning_rate,
        warmup_steps=max(1, options.steps // 4),
        total_steps=options.steps,
    )
    precisions = ("float32", *(ROUNDINGS if options.device == "cpu" else ("tf32", "bfloat16")))
    runs = [
        dict(precision=precision, seed=seed, losses=train(workload, settings, precision, seed))
        for precision in precisions
        for seed in SEEDS
    ]
    arguments = sys.argv[1:] if arguments is None else arguments
    result = {
        "kind": "precision",
        **machine(["precision.py", *arguments]),
        "config": options.config,
        "corpus": workload.corpus,
        "steps": options.steps,
        "settings": asdict(settings),
        "runs": runs,
    }
    print(table(result))
    if options.json:
        options.json.write_text(json.dumps(result) + "\n", encoding="utf-8")
    if options.plot:
        plot(result, options.plot)
    return 0


def train(workload, settings, precision, seed):
    """The loss of each of ``settings.total_steps`` steps; batches come again if they are fewer."""
    side = OurSide(workload, replace(settings, seed=seed))
    trainer = side.trainer
    if settings.device != "cpu":
        trainer.config = replace(trainer.config, matmul_precision=precision)
    elif precision != "float32":
        round_products(trainer.replicas, ROUNDINGS[precision])
    steps = range(settings.total_steps)
    return side.losses([step % len(workload.batches) for step in steps])


def round_products(models, rounded):
    """Let every matrix product that a parameter has to do with multiply ``rounded`` entries.

    Whatever is worked out from such an array is one too, and in a Transformer that is everything.
    """

    class Rounding(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
            inputs = [_plain(x) for x in inputs]
            if ufunc is np.matmul:
                inputs = [rounded(x) for x in inputs]
            if out is not None:
                options["out"] = tuple(_plain(x) for x in out)
            result = getattr(ufunc, method)(*inputs, **options)
            if out is not None:
                return out[0]
            return result.view(Rounding) if isinstance(result, np.ndarray) else result

    for model in models:
        for parameter in model.parameters():
            parameter.data = parameter.data.view(Rounding)


def _plain(x):
    return x.view(np.ndarray) if isinstance(x, np.ndarray) else x


def to_bits(x, count):
    """float32 x with ``count`` significant bits: to nearest, ties to even."""
    dropped = 24 - count
    bits = x.view(np.uint32)
    odd = bits >> dropped & 1  # the last bit that stays: a tie is rounded up where it is 1
    half = (1 << dropped - 1) - 1 + odd
    return (bits + half >> dropped << dropped).view(np.float32)


def to_float16(x):
    """float32 x as float16 holds it: in steps of 2^-24 below 2^-14, infinite above 65504.

    NumPy's own conversion is 30 times as slow for the many entries below 2^-14.
    """
    small = (x + np.float32(0.75)) - np.float32(0.75)  # float32 has steps of 2^-24 around 0.75
    y = np.where(np.abs(x) < 2**-14, small, to_bits(x, 11))
    return np.where(np.abs(y) > 65504, np.copysign(np.float32(np.inf), y), y)


ROUNDINGS = {
    CONTROL: partial(to_bits, count=23),
    "tf32": partial(to_bits, count=11),
    "bfloat16": partial(to_bits, count=8),
    "float16": to_float16,
}


def compare(runs):
    """How far the losses of each precision lie from those of float32.

    Args:
        runs: list of dicts with ``precision``, ``seed`` and ``losses``.

    Returns:
        dict by precision, of dicts: ``last``, the mean loss of the last tenth of the steps for each
        seed; ``shift``, how much higher that is than float32's of the same seed, on average; and
        ``distance``, the root of the mean squared difference of the windows' mean losses. For
        float32 the latter two are those of its second seed beside its first.
    """
    curves = {}
    for run in runs:
        curves.setdefault(run["precision"], []).append(run["losses"])
    first, second = np.array(curves["float32"])
    found = {}
    for precision, losses in curves.items():
        losses = np.array(losses)  # (seeds, steps)
        difference = losses - (first, second) if precision != "float32" else (second - first)[None]
        tenth = max(1, losses.shape[1] // 10)
        found[precision] = {
            "last": losses[:, -tenth:].mean(axis=1).tolist(),
            "shift": float(difference[:, -tenth:].mean()),
            "distance": float(np.sqrt((windows(difference) ** 2).mean())),
        }
    return found


def table(result):
    """The comparison as text."""
    tenth = max(1, result["steps"] // 10)
    how = "imitated on a CPU" if result["settings"]["device"] == "cpu" else "on a GPU"
    lines = [
        f"{result['config']} on {result['corpus']}, {result['steps']} steps, precisions {how}",
        "",
        f"             loss of the last {tenth:<4} beside float32",
        "             seed 1    seed 2    shift     windows",
    ]
    for precision, found in compare(result["runs"]).items():
        cells = [f"{loss:<10.4f}" for loss in found["last"]]
        if precision == "float32":
            seeds = found
            lines.append(f"{precision:12} {''.join(cells)}")
        else:
            lines.append(
                f"{precision:12} {''.join(cells)}{found['shift']:<+10.4f}{found['distance']:.4f}"
            )
    lines.append(f"{'seed 2 beside seed 1':33}{seeds['shift']:<+10.4f}{seeds['distance']:.4f}")
    return "\n".join(lines)


def plot(result, path):
    """Draw how far each precision lies from float32, window by window."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    curves = {}
    for run in result["runs"]:
        curves.setdefault(run["precision"], []).append(run["losses"])
    float32 = windows(np.array(curves.pop("float32")))
    steps = (np.arange(float32.shape[1]) + 0.5) * min(WINDOW, result["steps"])
    axes.plot(steps, np.abs(float32[1] - float32[0]), "k--", label="float32, another seed")
    for precision, losses in curves.items():
        distance = np.abs(windows(np.array(losses)) - float32).mean(axis=0)
        axes.plot(steps, distance, label=precision)
    axes.set(xlabel="step", ylabel="difference to float32, nats a token", yscale="log")
    axes.legend()
    figure.savefig(path, dpi=120, metadata={"Software": None})


def _parsed(arguments):
    parser = _options.parser(
        __doc__.splitlines()[0],
        "--config",
        "--data-dir",
        "--device",
        "--threads",
        "--batch-tokens",
        "--json",
    )
    add = parser.add_argument
    add("--steps", type=int, default=400, help="of each run, two in each precision")
    add("--peak-learning-rate", type=float, default=1.2e-3, help="after a quarter of the steps")
    add("--plot", type=Path, metavar="FILE", help="draw the differences, as .png, .svg or .pdf")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
