"""What a model of others learns from a text: all of it trained, or adapters of low rank.

    python benchmarks/adapters.py runs/smollm2 --json FILE

The text is what Python's standard library says of itself, which anybody has; its last tenth is held
out. Each row is a ``minitransformer train --from RUN`` as a user would type it, in a process of its
own: perplexity of the held-out text before and after, steps, minutes of the whole command, its most
memory, and how large what is stored is. All rows have equal steps. The peaks of the learning rate
are usual ones; they were not tuned.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import _options
import _results
from _machine import machine, numpy_blas
from language_model import standard_library_text

from minitransformer.commands.arguments import positive
from minitransformer.runs.checkpoint.arrays import PARAMETERS
from minitransformer.tasks.task import run_at

ROWS = {"adapters": "--lora 8 ", "all": ""}


def main(arguments=None):
    """Measure, print a table and write the JSON; returns the exit status."""
    options = _parsed(arguments)
    said = sys.argv[1:] if arguments is None else arguments
    result = {"kind": "adapters", **machine(["adapters.py", *said]), "blas": numpy_blas()}
    result |= {"characters": options.characters, "epochs": options.epochs, "rows": []}
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "text.txt"
        text.write_text(standard_library_text(options.characters), encoding="utf-8")
        for path in options.runs:
            for (what, fields), rate in zip(ROWS.items(), options.rates, strict=True):
                run = Path(folder) / f"{Path(path).name}-{what}"
                fields = f"{fields}--peak-learning-rate {rate} {options.fields}".split()
                command = ["--from", path, "--text", text, "--epochs", options.epochs, *fields]
                measured = of_training([*command, "--run-folder", run])
                row = {"run": Path(path).name, "trained": what, "fields": " ".join(fields)}
                result["rows"].append(row | measured | of_run(run))
    print(table(result))
    _results.write(result, options.json)
    return 0


def of_training(arguments):
    """Perplexity before, seconds and most memory of a training, which is made now.

    Raises:
        SystemExit: it failed; says how.
    """
    start = perf_counter()
    command = [sys.executable, "-m", "minitransformer", "train", *map(str, arguments)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, arguments))} failed: {said}")
    (before,) = re.findall(r"before: validation perplexity ([\d.]+)", said)
    seconds = perf_counter() - start
    return {"before": float(before), "seconds": seconds, "peak_bytes": 1024 * usage.ru_maxrss}


def of_run(path):
    """What a run in a folder has learned, and what it stores."""
    run = run_at(path)
    entries = list(run.log)
    arrays, _ = run.load_parameters()
    sizes = [array.size for name, array in arrays.items() if name.startswith(PARAMETERS)]
    return {
        "after": min(entry["perplexity"] for entry in entries if entry["kind"] == "validation"),
        "steps": max(entry["step"] for entry in entries),
        "parameters": sum(sizes),
        "stored_bytes": run.model.stat().st_size,
    }


def table(result):
    """What was measured, as text."""
    lines = [
        f"{result['cpu']}, {result['cores']} cores; {result['blas']}",
        "",
        "| run | trained | numbers | perplexity | then | steps | minutes | memory | stored |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['run']} | {row['trained']} (`{row['fields']}`) | {row['parameters']:,} "
        f"| {row['before']:.2f} | {row['after']:.2f} | {row['steps']} "
        f"| {row['seconds'] / 60:.1f} | {row['peak_bytes'] / 1e9:.2f} GB "
        f"| {row['stored_bytes'] / 1e6:.1f} MB |"
        for row in result["rows"]
    ]
    return "\n".join(lines)


def _parsed(arguments):
    parser = _options.parser(__doc__.splitlines()[0], "--json")
    parser.add_argument("runs", nargs="+", help="run folders of models that were imported")
    parser.add_argument("--characters", type=positive, default=120_000, help="of the text")
    parser.add_argument("--epochs", type=positive, default=2)
    parser.add_argument("--rates", nargs=2, default=["1e-3", "1e-4"], help="peaks of the two rows")
    parser.add_argument("--fields", default="", help="more fields for each training")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    _options.end(main)
