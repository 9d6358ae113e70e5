"""What the benchmarks that compare the courses of trainings have in common."""

import json
import sys
from dataclasses import asdict

import _options
from _machine import cores, machine
from _settings import Settings
from _workload import make_workload

from minitransformer.commands.arguments import picture_file, positive

SEEDS = (1, 2)
WINDOW = 20  # steps whose losses are averaged


def parsed(description, arguments):
    """The options: of the model, its text and its schedule, and where the result goes."""
    parser = _options.parser(
        description, "--config", "--data-dir", "--device", "--threads", "--batch-tokens", "--json"
    )
    add = parser.add_argument
    add("--steps", type=positive, default=400, help="of each run")
    add("--peak-learning-rate", type=float, default=1.2e-3, help="after a quarter of the steps")
    add("--plot", type=picture_file, metavar="FILE", help="draw the curves, as .png, .svg or .pdf")
    return parser.parse_args(arguments)


def begin(kind, options, arguments):
    """The Workload and the Settings of the runs, and the result as far as it is known."""
    workload = make_workload(
        options.config, options.data_dir, batch_tokens=options.batch_tokens, count=options.steps
    )
    settings = Settings(
        threads=options.threads or cores(),
        device=options.device,
        peak_learning_rate=options.peak_learning_rate,
        warmup_steps=max(1, options.steps // 4),
        total_steps=options.steps,
    )
    result = {
        "kind": kind,
        **machine([f"{kind}.py", *(sys.argv[1:] if arguments is None else arguments)]),
        "config": options.config,
        "corpus": workload.corpus,
        "steps": options.steps,
        "settings": asdict(settings),
    }
    return workload, settings, result


def finish(result, options, table, plot):
    """Print and write the result, and draw it if that is asked for."""
    print(table(result))
    if options.json:
        options.json.write_text(json.dumps(result) + "\n", encoding="utf-8")
    if options.plot:
        plot(result).savefig(options.plot, dpi=120, metadata={"Software": None})


def steps_of(workload, steps):
    """The batch of each step: they come again where they are fewer."""
    return [step % len(workload.batches) for step in range(steps)]


def windows(curves):
    """Means over windows of steps, (runs, windows); a last window that is not full is left out."""
    runs, steps = curves.shape
    window = min(WINDOW, steps)
    whole = curves[:, : steps - steps % window]
    return whole.reshape(runs, -1, window).mean(axis=2)
