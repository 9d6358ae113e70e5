"""What do rounded matrix products cost a training?

    python benchmarks/precision.py --data-dir DIR --json FILE --plot FILE.png

Tensor cores multiply entries of fewer bits, and add the products up in float32. The same model is
trained in each precision from the same weights, on the same batches, with the same dropout masks,
so that losses of two runs differ by the rounding alone.

On a GPU the products are those of ``matmul_precision``. On a CPU they are imitated: the readable
functions run, and each of their matrix products is given rounded entries. That says nothing about
speed. Any difference, however small, grows as training goes on: for that there is a control there,
which drops the last of float32's 24 bits.
"""

import math
from dataclasses import asdict, replace
from functools import partial

import _courses
import _options
import numpy as np
from _courses import SEEDS, WINDOW, windows
from _our_side import OurSide

from minitransformer.training.watch import TrainingError


def main(arguments=None):
    """Train in each precision, compare, print and write; returns the exit status."""
    options = _courses.parsed(__doc__.splitlines()[0], arguments)
    workload, settings, result = _courses.begin("precision", options, arguments)
    # Twins would not know the arrays that imitate, and draw other masks than the references.
    settings = replace(settings, accelerate=options.device != "cpu")
    result |= {"settings": asdict(settings), "side": OurSide(workload, settings).facts()}
    precisions = ROUNDINGS if options.device == "cpu" else ("tf32", "bfloat16")
    result["runs"] = [
        dict(precision=precision, seed=seed, losses=train(workload, settings, precision, seed))
        for precision in ("float32", *precisions)
        for seed in SEEDS
    ]
    _courses.finish(result, options, table, plot)
    return 0


def train(workload, settings, precision, seed):
    """The loss of each of ``settings.total_steps`` steps; NaN from where the training is lost.

    On a CPU the settings have to be those of the readable functions.
    """
    side = OurSide(workload, replace(settings, seed=seed))
    trainer = side.trainer
    if settings.device != "cpu":
        stepper = trainer.stepper
        stepper.config = replace(stepper.config, matmul_precision=precision)
    elif precision != "float32":
        round_products(trainer.stepper.replicas, ROUNDINGS[precision])
    steps = settings.total_steps
    try:
        return side.losses(_courses.steps_of(workload, steps))
    except TrainingError:
        losses = [entry["loss"] for entry in trainer.run.log]
        return losses + [math.nan] * (steps - len(losses))


def round_products(models, rounding):
    """Let every matrix product of the readable functions multiply what ``rounding`` returns.

    Parameters become arrays that do so, and so does nearly all that is worked out from them: each
    product has at least one such factor.
    """

    class Rounding(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
            inputs = [_plain(x) for x in inputs]
            if ufunc is np.matmul:
                inputs = [rounding(x) for x in inputs]
            if out is not None:
                options["out"] = tuple(_plain(x) for x in out)
            result = getattr(ufunc, method)(*inputs, **options)
            if out is not None:
                return out[0]
            return result.view(Rounding) if isinstance(result, np.ndarray) else result

    for model in models:
        for parameter in model.parameters():
            parameter.hold(parameter.data.view(Rounding), parameter.grad, parameter.flat)


def _plain(x):
    return x.view(np.ndarray) if isinstance(x, np.ndarray) else x


def with_bits(x, count):
    """float32 x with ``count`` significant bits: to nearest, ties to even."""
    dropped = 24 - count
    bits = x.view(np.uint32)
    last_kept = (bits >> dropped) & 1
    bits = bits + ((1 << (dropped - 1)) - 1 + last_kept)  # carries over from half on
    return ((bits >> dropped) << dropped).view(np.float32)


def to_float16(x):
    """float32 x as float16 holds it: in steps of 2^-24 below 2^-14, infinite from 65520 on.

    NumPy's own conversion takes several times as long where most entries are below 2^-14.
    """
    small = (x + np.float32(0.75)) - np.float32(0.75)  # float32 has steps of 2^-24 around 0.75
    y = np.where(np.abs(x) < 2**-14, small, with_bits(x, 11))
    return np.where(np.abs(y) > 65504, np.copysign(np.float32(np.inf), y), y)


ROUNDINGS = {
    "23 bits": partial(with_bits, count=23),
    "tf32": partial(with_bits, count=11),
    "bfloat16": partial(with_bits, count=8),
    "float16": to_float16,
}


def compare(runs):
    """How far the losses of each precision lie from those of float32.

    Args:
        runs: list of dicts with ``precision``, ``seed`` and ``losses``.

    Returns:
        dict by precision of dicts: ``last``, the mean loss of the last tenth of the steps for each
        seed; and but for float32 ``shift``, how much higher that is than float32's of the same
        seed, on average; and ``distance``, the root of the mean squared difference of the windows'
        mean losses. Under ``"another seed"`` stands how far float32 lies from itself.
    """
    curves = _curves(runs)
    float32 = curves["float32"]
    tenth = slice(-max(1, float32.shape[1] // 10), None)

    def beside(losses, others):
        difference = losses - others
        return {
            "shift": float(difference[:, tenth].mean()),
            "distance": float(np.sqrt((windows(difference) ** 2).mean())),
        }

    found = {name: {"last": x[:, tenth].mean(axis=1).tolist()} for name, x in curves.items()}
    for name in set(curves) - {"float32"}:
        found[name] |= beside(curves[name], float32)
    found["another seed"] = beside(float32[1:], float32[:1])
    return found


def _curves(runs):
    """The losses of each precision, (seeds, steps)."""
    curves = {}
    for run in runs:
        curves.setdefault(run["precision"], []).append(run["losses"])
    return {precision: np.array(losses) for precision, losses in curves.items()}


def table(result):
    """The comparison as text."""
    tenth = max(1, result["steps"] // 10)
    how = "imitated on a CPU" if result["settings"]["device"] == "cpu" else "on a GPU"
    lines = [
        f"{result['config']} on {result['corpus']}, {result['steps']} steps, precisions {how}",
        "",
        f"              mean loss, last {tenth} steps  from float32, same seed",
        "              seed 1    seed 2           shift     distance",
    ]
    for precision, found in compare(result["runs"]).items():
        last = "".join(f"{loss:<10.4f}" for loss in found.get("last", ()))
        line = f"{precision:14}{last:27}"
        if "shift" in found:
            line += f"{found['shift']:<+10.4f}{found['distance']:.4f}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def plot(result):
    """A Figure of how far each precision lies from float32, window by window."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    curves = {name: windows(losses) for name, losses in _curves(result["runs"]).items()}
    float32 = curves.pop("float32")
    steps = (np.arange(float32.shape[1]) + 0.5) * min(WINDOW, result["steps"])
    axes.plot(steps, np.abs(float32[1] - float32[0]), "k--", label="float32, another seed")
    for precision, losses in curves.items():
        axes.plot(steps, np.abs(losses - float32).mean(axis=0), label=precision)
    axes.set(xlabel="step", ylabel="difference to float32, nats a token", yscale="log")
    axes.legend()
    return figure


if __name__ == "__main__":
    _options.end(main)
