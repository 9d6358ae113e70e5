"""Does training take the same course as in PyTorch?

    python benchmarks/loss_curve.py --data-dir DIR --plot FILE.png

The same model is trained by both sides from the same weights, on the same batches in the same
order, with the same schedule, clipping and label smoothing.

Without dropout nothing is random, and the losses are the same but for rounding, which grows from
step to step: the first steps are compared one by one.

With dropout the two draw different masks, so two seeds of each side are trained. How far the seeds
of one side lie apart is the noise, which bounds how far apart the mean curves of the two sides may
lie. The curves are compared in windows of steps, in which the losses are averaged.
"""

import tempfile
from dataclasses import replace

import _courses
import _options
import numpy as np
from _courses import SEEDS, WINDOW, windows
from _process import SideProcess, require_torch

FIRST_STEPS = 20  # that are compared one by one
ROUNDING = 1e-3  # of a loss, relative: what float32 makes of 20 steps
NOISE = 2.0  # the standard deviations that the mean curves may lie apart, on average


def main(arguments=None):
    """Train, compare, print and write; returns 0 if the curves agree and 1 otherwise."""
    options = _courses.parsed(__doc__.splitlines()[0], arguments)
    require_torch()
    workload, settings, result = _courses.begin("loss_curve", options, arguments)
    runs = train(workload, settings, options.steps)
    result |= {"comparison": compare(runs), "runs": runs}
    _courses.finish(result, options, table, plot)
    return 0 if result["comparison"]["agree"] else 1


def train(workload, settings, steps):
    """All six runs, one after the other.

    Args:
        workload: a Workload; its batches come again when there are fewer than steps.
        settings: Settings of both sides.
        steps: how many to train.

    Returns:
        A list of dicts with ``side``, ``dropout`` (whether there was any), ``seed`` and ``losses``.
    """
    none = dict(dropout=0.0, attention_dropout=0.0, feed_forward_dropout=0.0)
    still = replace(workload, config=replace(workload.config, **none))
    indices = _courses.steps_of(workload, steps)
    runs = []
    for work, seeds in ((still, SEEDS[:1]), (workload, SEEDS)):
        with tempfile.TemporaryDirectory() as folder:
            work.save(folder)
            for seed in seeds:
                for side in ("ours", "torch"):
                    with SideProcess(side, folder, replace(settings, seed=seed)) as process:
                        losses = process.call("losses", indices=indices)
                    dropout = work is workload
                    runs.append(dict(side=side, dropout=dropout, seed=seed, losses=losses))
    return runs


def compare(runs):
    """Whether the curves of the two sides are the same, and how far they lie apart.

    Args:
        runs: what :func:`train` returned.

    Returns:
        dict: ``rounding``, the largest relative difference of the first losses without dropout;
        ``noise``, the standard deviation of a window's mean loss over seeds; ``distance``, the
        root of the mean squared difference of the two sides' mean curves, in units of what the
        noise alone would make of it; ``agree``.
    """
    ours, theirs = (_curves(runs, side, dropout=False)[0] for side in ("ours", "torch"))
    first = slice(FIRST_STEPS)
    rounding = float(np.max(np.abs(ours[first] / theirs[first] - 1)))

    ours, theirs = (windows(_curves(runs, side, dropout=True)) for side in ("ours", "torch"))
    # Two seeds of one side differ by √2 standard deviations, the means of two seeds by one.
    differences = np.concatenate([ours[0] - ours[1], theirs[0] - theirs[1]])
    noise = float(np.sqrt(np.mean(differences**2) / 2))
    distance = float(np.sqrt(np.mean((ours.mean(axis=0) - theirs.mean(axis=0)) ** 2))) / noise
    return {
        "rounding": rounding,
        "noise": noise,
        "distance": distance,
        "agree": bool(rounding <= ROUNDING and distance <= NOISE),
    }


def _curves(runs, side, dropout):
    """The losses of a side's runs, (runs, steps)."""
    chosen = [run for run in runs if run["side"] == side and run["dropout"] == dropout]
    return np.array([run["losses"] for run in chosen])


def table(result):
    """The comparison as text."""
    found = result["comparison"]
    lines = [
        f"{result['config']} on {result['corpus']}, {result['steps']} steps",
        f"without dropout the first {min(FIRST_STEPS, result['steps'])} losses differ by "
        f"{found['rounding']:.1e} at most (allowed: {ROUNDING:.0e})",
        f"with dropout seeds differ by {found['noise']:.1e}, and the two sides by "
        f"{found['distance']:.2f} of what that explains (allowed: {NOISE:.0f})",
        "the losses fall alike" if found["agree"] else "THE LOSSES DO NOT FALL ALIKE",
        "",
        "with dropout, two seeds of each side:",
        "steps        minitransformer          PyTorch",
    ]
    ours, theirs = (windows(_curves(result["runs"], s, dropout=True)) for s in ("ours", "torch"))
    window = min(WINDOW, result["steps"])
    for i in range(0, ours.shape[1], max(1, ours.shape[1] // 10)):
        span = f"{i * window + 1}-{(i + 1) * window}"
        cells = "  ".join(f"{loss:7.4f}" for loss in (*ours[:, i], *theirs[:, i]))
        lines.append(f"{span:12} {cells}")
    return "\n".join(lines)


def plot(result):
    """A Figure of the windows of all runs with dropout, and the runs without."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    looks = {"ours": ("minitransformer", "C0", "-"), "torch": ("PyTorch", "C1", "--")}
    for panel, dropout in zip(axes, (False, True), strict=True):
        for side, (name, color, style) in looks.items():
            curves = windows(_curves(result["runs"], side, dropout))
            steps = (np.arange(curves.shape[1]) + 0.5) * min(WINDOW, result["steps"])
            for i, curve in enumerate(curves):
                label = name if i == 0 else None
                panel.plot(steps, curve, color=color, linestyle=style, label=label)
        panel.set_title("with dropout, two seeds each" if dropout else "without dropout")
        panel.set_xlabel("step")
        panel.legend()
    axes[0].set_ylabel("loss, nats a token")
    return figure


if __name__ == "__main__":
    _options.end(main)
