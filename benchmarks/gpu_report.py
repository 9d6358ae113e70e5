"""What this package does on your GPU, in 20 minutes at most: one JSON file, and a page of it.

    python benchmarks/gpu_report.py

Each part is a command in a process of its own that has a time of its own: the tests that need a
GPU; a step of training, and decoding, beside PyTorch if it is there; a training on Multi30k that is
cut off when its minutes are over, and the BLEU that it has reached. What fails or hangs is
reported, and the others go on. Both files are written anew after each part.

``--quick`` is the rehearsal of all this, with little work in each part, on a CPU if you like.
"""

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import _options
import _part
from _gpu_page import in_a_line, page, require_shown, table
from _machine import machine
from _part import ROOT, Part
from _private import without_private

from minitransformer.data.files import DATA_VARIABLE
from minitransformer.data.text.multi30k import FILES
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.text import PATHS

PREPARATION = 60  # seconds, to see what there is
INTRODUCTION = """On {name}, one after another, {minutes:.0f} minutes at most:
{parts}
Multi30k (2 MB) is downloaded, unless --data-dir or {variable} names a folder with it.
Results go to {folder}.
"""
NO_DATA = f"""    Without Multi30k the toy corpus is taken. With a copy of it in a folder DIR:
    make gpu-report {DATA_VARIABLE}=DIR
    or python benchmarks/gpu_report.py --data-dir DIR"""
SEND = """If you like, send both files to the project: attach them to an issue; or copy the JSON
file to benchmarks/results/ under a name that says which GPU this is, run python
benchmarks/report.py, and open a pull request. What failed is as welcome as what did not. Names of
user, machine and folders have been replaced as far as they are known; have a look before."""


def main(arguments=None):
    """Make the report; the exit status is 1 if a part failed, and 130 after Ctrl-C."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parsed(arguments)
    if options.page:
        print(write_page(options.page))
        return 0
    # What some shells start in the background ignores Ctrl-C, and so would the parts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    facts = what_there_is(options.device)
    folder = options.folder
    folder.mkdir(parents=True)
    report = {"kind": "gpu_report", **machine(["gpu_report.py", *arguments])}
    report |= {"date": f"{datetime.now(UTC):%Y-%m-%d}", "quick": options.quick, **facts}
    report = without_private(report, {ROOT: "."}) | {"parts": []}
    try:
        make(report, options)
    except KeyboardInterrupt:
        print(f"\ninterrupted; what was done until then is in {folder}")
        return 130
    print(f"\n{table(report)}\n\n{folder}/gpu-report.json\n{folder}/gpu-report.md\n\n{SEND}")
    return int(any("problem" in part for part in report["parts"]))


def make(report, options):
    """Run all parts and add what came of each to the report, and to the files."""
    folder, data = options.folder, options.data_dir or os.environ.get(DATA_VARIABLE)
    environment = {DATA_VARIABLE: os.path.abspath(data) if data else ""}
    private = {folder: "FOLDER", ROOT: "."} | ({data: "DIR"} if data else {})
    multi30k = Part("multi30k", "output", "Multi30k", ["benchmarks/_fetch.py"], 60)
    following = measurements(options, report["without_torch"])
    print(introduction(report, [multi30k, *following], folder), flush=True)

    def run(part):
        print(f"{part.title}, {part.seconds:.0f} seconds at most", flush=True)
        outcome = without_private(_part.run(part, folder, environment), private)
        outcome |= {"name": part.name, "kind": part.kind}  # whatever the machine is called
        report["parts"].append(outcome)
        file = folder / "gpu-report.json"
        file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        write_page(file)
        print(f"    {outcome['seconds']:.0f} s: {in_a_line(outcome)}", flush=True)
        return outcome["status"] == "done"

    if run(multi30k):
        environment[DATA_VARIABLE] = environment[DATA_VARIABLE] or str(FILES.cache())
    else:
        print(NO_DATA)
        environment[DATA_VARIABLE] = ""
        following = measurements(options, report["without_torch"], recipe="toy")
    for part in following:
        run(part)


def what_there_is(device):
    """What is known of a device, and why PyTorch cannot use it, or None, as a dict.

    Raises:
        SystemExit: the device cannot be used; says why.
    """
    command = [sys.executable, ROOT / "benchmarks/_gpu.py", device]
    try:
        said = subprocess.run(command, stdout=subprocess.PIPE, timeout=PREPARATION, check=True)
    except subprocess.TimeoutExpired:
        raise SystemExit(f"device {device!r} does not answer in {PREPARATION} seconds") from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(error.returncode) from None  # it has said why
    return json.loads(said.stdout)


def measurements(options, without_torch, recipe="multi30k-quick"):
    """The parts that follow upon Multi30k, in their order.

    Args:
        options: of this script.
        without_torch: why there is no PyTorch to measure beside, or None.
        recipe: to train by.
    """
    folder, device = options.folder, ["--device", options.device]
    run = folder / "training"
    tests, step, train, beam, sentences = [], [], [], ["--beam-size", 5, "--alpha", 1], []
    patience = 1
    if options.quick:
        patience = 4  # a CPU may be slow
        tests = ["tests/optim/test_clipping.py"]
        step = ["--batch-tokens", 400, "--steps", 4, "--block", 2, "--threads", 1]
        train = ["--epochs", 1, "--d-model", 16, "--num-heads", 2, "--d-ff", 16]
        train += ["--max-length", 20, "--batch-tokens", 20_000]
        beam = ["--beam-size", 1]
        sentences = ["--sentences", 20, "--rounds", 1, "--threads", 1]

    def measured(name, title, seconds, kind, *choices):
        """A part whose command writes its result to a file."""
        ours = kind == "evaluate"
        script = ["-m", "minitransformer", kind] if ours else [f"benchmarks/{kind}.py"]
        file = folder / f"{name}.json"
        command = [*script, *choices, *device, "--json", file]
        return Part(name, kind, title, command, patience * seconds, lambda: result_in(file, kind))

    beside = ["--against", "reference"] if without_torch else []
    sizes = ("toy", "toy") if options.quick else ("tiny", "base")
    tiny, base = (["--config", size, *step, *beside] for size in sizes)
    tf32 = measured("base-tf32", "its step in TF32", 80, "train_step", *base, "--precision", "tf32")
    alone = ["--alone"] if without_torch else []
    training = ["-m", "minitransformer", "train", recipe, *train, *device, "--run-folder", run]
    return [
        Part("tests", "output", "the tests on a GPU", ["-m", "pytest", "-m", "gpu", *tests], 280),
        measured("tiny", "a step of a small model", 80, "train_step", *tiny),
        measured("base", "a step of the paper's base model", 80, "train_step", *base),
        *([tf32] if options.device != "cpu" else []),
        Part(
            "training",
            "training",
            f"a training by the recipe {recipe}",
            training,
            280,
            lambda: training_result(RunFolder(run)),
            may_be_cut=True,
        ),
        measured("scores", "translations of the test set", 60, "evaluate", run, *beam),
        measured(
            "decode", "speed of translating", 120, "decode", "--run-folder", run, *sentences, *alone
        ),
    ]


def result_in(file, kind):
    """The result of a part in a JSON file.

    Raises:
        Exception: of any type, where it is not what a result of this kind should be.
    """
    result = json.loads(file.read_text(encoding="utf-8"))
    require_shown(kind, result)
    return result


def training_result(run):
    """How far the training in a RunFolder came, as a dict."""
    _, recipe = run.load_config()
    for name in PATHS:
        recipe["data"].pop(name, None)
    entries = {"train": [], "validation": []}
    for entry in run.log.entries():
        entries[entry["kind"]].append(entry)
    return {
        "recipe": recipe,
        "finished": run.model.exists(),
        "steps": max((entry["step"] for kind in entries.values() for entry in kind), default=0),
        "logged_last": entries["train"][-1:],
        "validations": entries["validation"],
    }


def introduction(report, parts, folder):
    """What is going to be done, and how long that takes at most."""
    seconds = PREPARATION + sum(part.seconds + _part.GRACE for part in parts)
    listed = [f"    {part.seconds:>4.0f} s  {part.title}" for part in parts]
    text = INTRODUCTION.format(
        name=report["gpu"]["name"],
        minutes=seconds / 60,
        parts="\n".join(listed),
        variable=DATA_VARIABLE,
        folder=folder,
    )
    if report["without_torch"]:
        text += f"There will be no ratios to PyTorch: {report['without_torch']}.\n"
    return text


def write_page(file):
    """Write the page of a JSON file beside it; returns its path."""
    report = json.loads(file.read_text(encoding="utf-8"))
    path = file.with_suffix(".md")
    path.write_text(page(report), encoding="utf-8")
    return path


def _parsed(arguments):
    parser = _options.parser(__doc__.splitlines()[0])
    new = ROOT / f"runs/gpu-report-{datetime.now():%Y%m%d-%H%M%S}"
    add = parser.add_argument
    add("--device", default="cuda", help="cuda or cuda:N; cpu with --quick")
    add("--data-dir", help="folder with Multi30k; without it and MINITRANSFORMER_DATA, a download")
    add("--folder", type=Path, default=new, help="a new one, for the results")
    add("--quick", action="store_true", help="a rehearsal, whose figures mean nothing")
    add("--page", type=Path, metavar="JSON", help="only make the page of a report again")
    options = parser.parse_args(arguments)
    options.folder = options.folder.absolute()
    if options.data_dir and not os.path.isdir(options.data_dir):
        parser.error(f"--data-dir: there is no folder {options.data_dir}")
    if options.folder.exists() and not options.page:
        parser.error(f"{options.folder} is there already; choose a new --folder")
    return options


if __name__ == "__main__":
    _options.end(main)
