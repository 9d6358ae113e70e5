"""A training step of minitransformer beside the same step of PyTorch, or of our own reference.

    python benchmarks/train_step.py --config tiny --data-dir DIR

Both sides have the same first weights, the same batches, dropout rates, clipping and Adam, and a
process each. First they show that loss and gradients agree without dropout. Then they take turns in
blocks of steps on the same batches, one waiting while the other computes, after a block of warming
up. The ratio is that of the seconds for all blocks; each block has its own, which shows the spread.
"""

import math
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

import _options
import _results
import numpy as np
from _flops import batch_flops
from _machine import cores, machine, note_on_kernels
from _process import TUNED_MALLOC, SideProcess, require_torch
from _settings import PRECISIONS, Settings
from _workload import make_workload

from minitransformer.commands.arguments import positive

# How far loss and gradients may lie apart. In float64 only an error makes more. In lower precision
# a ReLU near 0 may round to either side, which turns a few of its million gradients on or off.
TOLERANCES = {"float64": 1e-9, "float32": 3e-3, "tf32": 3e-2}


def main(arguments=None):
    """Measure, print a table and write the JSON; returns the exit status."""
    options = _parsed(arguments)
    if options.against != "reference":
        require_torch()
    workload = make_workload(
        options.config,
        options.data_dir,
        batch_tokens=options.batch_tokens,
        count=options.steps,
    )
    settings = Settings(
        threads=options.threads or cores(), device=options.device, precision=options.precision
    )
    result = {"kind": "train_step", **machine(["train_step.py", *_arguments(arguments)])}
    result |= measure(workload, settings, options.against, options.tuned_malloc, options.block)
    result["config"] = options.config
    print(table(result))
    _results.write(result, options.json)
    return 0


def measure(workload, settings, against="torch", tuned_malloc=False, block=5):
    """Compare both sides on a Workload; returns a dict, ready for JSON.

    Args:
        workload: a Workload; each of its batches is one step.
        settings: Settings of our side.
        against: ``"torch"``, ``"torch-compile"`` or ``"reference"``.
        tuned_malloc: whether the other side has the allocator's settings TUNED_MALLOC.
        block: steps that a side takes in a row.

    Raises:
        SystemExit: the two sides do not compute the same.
    """
    other = "ours" if against == "reference" else "torch"
    other_settings = replace(
        settings,
        accelerate=against != "reference",
        compile=against == "torch-compile",
    )
    other_environment = TUNED_MALLOC if tuned_malloc else None
    with tempfile.TemporaryDirectory() as folder:
        workload.save(folder)

        def both():
            ours = SideProcess("ours", folder, settings)
            return ours, SideProcess(other, folder, other_settings, other_environment)

        # Processes of their own, so that the memory they need is not counted below.
        ours, theirs = both()
        with ours, theirs:
            agreement = {
                precision: compare(ours, theirs, workload, other, folder, dtype)
                for dtype, precision in (("float64", "float64"), ("float32", settings.precision))
            }
        check(agreement)
        ours, theirs = both()
        with ours, theirs:
            steps = len(workload.batches)
            # What is compiled is compiled anew for some of the shapes, so it has to see them all.
            warm_up = steps if other_settings.compile else block
            seconds = alternate(ours, theirs, steps, block, warm_up)
            sides = [side.call("facts") | side.call("memory") for side in (ours, theirs)]
            for side, facts in zip((ours, theirs), sides, strict=True):
                facts["gemm_gflops"] = side.call("gemm")
    return {
        "against": against,
        "tuned_malloc": tuned_malloc,
        "settings": asdict(settings),
        "model": asdict(workload.config),
        "corpus": workload.corpus,
        "padding": workload.padding,
        "steps": len(workload.batches),
        "block": block,
        "agreement": agreement,
        **summary(workload, sides, seconds),
    }


def compare(ours, theirs, workload, other, folder, dtype):
    """How far loss and gradients of the two sides lie apart on one batch, without dropout."""
    files = [str(Path(folder) / f"{name}.npz") for name in ("ours", "theirs")]
    losses = [
        side.call("gradients", index=0, file=file, dtype=dtype)
        for side, file in zip((ours, theirs), files, strict=True)
    ]
    ours, theirs = (dict(np.load(file, allow_pickle=False)) for file in files)
    if other == "torch":
        from torch_model import from_ours

        ours = from_ours(ours, workload.config)
    differences = {name: difference(ours[name], theirs[name]) for name in theirs}
    name = max(differences, key=differences.get)
    return {
        "loss": difference(*map(np.float64, losses)),
        "gradient": differences[name],
        "of": name,
    }


def check(agreement):
    """End the script where the sides disagree: their speed would mean nothing.

    Raises:
        SystemExit: says by how much.
    """
    for precision, found in agreement.items():
        if max(found["loss"], found["gradient"]) > TOLERANCES[precision]:
            raise SystemExit(
                f"the two sides do not compute the same: in {precision} without dropout the loss "
                f"differs by {found['loss']:.1e} and the gradient of {found['of']} by "
                f"{found['gradient']:.1e}, and {TOLERANCES[precision]:.0e} is allowed"
            )


def difference(x, y):
    """‖x − y‖ / ‖y‖, and infinity where that is not a number, so that it is the largest."""
    ratio = float(np.linalg.norm(x - y) / np.linalg.norm(y))
    return math.inf if math.isnan(ratio) else ratio


def alternate(ours, theirs, steps, block, warm_up):
    """Seconds of each block, as [(ours, theirs)]; who begins changes from block to block.

    Before, each side takes ``warm_up`` steps that are not timed.
    """
    blocks = [list(range(i, min(i + block, steps))) for i in range(0, steps, block)]
    for side in (ours, theirs):
        side.call("take_steps", indices=list(range(min(warm_up, steps))))
    seconds = []
    for i, indices in enumerate(blocks):
        order = (ours, theirs) if i % 2 == 0 else (theirs, ours)
        taken = [side.call("take_steps", indices=indices) for side in order]
        seconds.append(taken if i % 2 == 0 else taken[::-1])
    return seconds


def summary(workload, sides, seconds):
    """The figures: the ratio and those of each side."""
    tokens = sum(batch.num_tokens for batch in workload.batches)
    flops = sum(sum(batch_flops(workload.config, b).values()) for b in workload.batches)
    totals = [sum(times) for times in zip(*seconds, strict=True)]
    for facts, total in zip(sides, totals, strict=True):
        peak = max(facts["gemm_gflops"].values())
        facts["seconds_per_step"] = total / len(workload.batches)
        facts["tokens_per_second"] = tokens / total
        facts["gflops"] = flops / total / 1e9
        facts["gemm_peak_gflops"] = peak
        facts["gemm_peak_share"] = facts["gflops"] / peak
    return {
        "gflop_per_step": flops / len(workload.batches) / 1e9,
        "ratio": totals[1] / totals[0],
        "ratio_of_blocks": [theirs / ours for ours, theirs in seconds],
        "ours": sides[0],
        "theirs": sides[1],
    }


ROWS = (  # what is printed for each side: label, key, format
    ("BLAS", "blas", "{}"),
    ("threads", "threads", "{}"),
    ("target tokens/s", "tokens_per_second", "{:,.0f}"),
    ("seconds a step", "seconds_per_step", "{:.3f}"),
    ("GFLOP/s", "gflops", "{:.1f}"),
    ("GEMM peak, GFLOP/s", "gemm_peak_gflops", "{:.1f}"),
    ("share of the peak", "gemm_peak_share", "{:.0%}"),
    ("peak memory, MB", "peak_mb", "{:,.0f}"),
    ("peak on the GPU, MB", "device_peak_mb", "{:,.0f}"),
)


def table(result):
    """A result as text."""
    ours, theirs = result["ours"], result["theirs"]
    ratios = result["ratio_of_blocks"]
    cells = [("", ours["name"], other_name(result))]
    for label, key, form in ROWS:
        if key in ours:
            cells.append((label, form.format(ours[key]), form.format(theirs[key])))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        f"{result['cpu']}, {result['cores']} cores",
        f"{result['config']} on {result['corpus']}: {result['gflop_per_step']:.1f} GFLOP a step, "
        f"{result['padding']:.1%} of the positions are padding",
        *(
            f"without dropout, in {precision}, the losses differ by {found['loss']:.0e}, "
            f"the gradients by {found['gradient']:.0e} at most"
            for precision, found in result["agreement"].items()
        ),
        "",
    ]
    for row in cells:
        lines.append("  ".join(map(str.ljust, row, widths)).rstrip())
    lines += [
        "",
        f"ratio {result['ratio']:.2f}, from {min(ratios):.2f} to {max(ratios):.2f} in "
        f"blocks of {result['block']} steps, {result['steps']} in all",
    ]
    lines += note_on_kernels(result["environment"])
    return "\n".join(lines)


def other_name(result):
    """What ours is compared with."""
    return result["theirs"]["name"] + (", tuned malloc" if result["tuned_malloc"] else "")


def _arguments(arguments):
    return sys.argv[1:] if arguments is None else arguments


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
    add(
        "--against",
        choices=("torch", "torch-compile", "reference"),
        default="torch",
        help="the other side: PyTorch as it is or compiled, or our code without its faster twins",
    )
    add("--precision", choices=PRECISIONS, default="float32", help="of matrix products")
    add("--steps", type=positive, default=40, help="timed steps of each side")
    add("--block", type=positive, default=5, help="steps that a side takes in a row")
    add("--tuned-malloc", action="store_true", help="tune the allocator of the other side")
    options = parser.parse_args(arguments)
    try:
        Settings(device=options.device, precision=options.precision)
    except ValueError as error:
        parser.error(str(error))
    return options


if __name__ == "__main__":
    _options.end(main)
