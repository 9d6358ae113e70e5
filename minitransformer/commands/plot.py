"""``minitransformer plot``: the curves of a run, also while it trains."""

from functools import partial

from minitransformer.commands.arguments import add_run_folder
from minitransformer.core.regular_file import written_whole
from minitransformer.evaluation import plots
from minitransformer.runs.checkpoint.file import RunError
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.task import task_class


def add(parser):
    parser.description = (
        "Draw loss.png and learning_rate.png into a run folder, also while it trains."
    )
    add_run_folder(parser)
    parser.set_defaults(run=run)


def run(options):
    """Draw the curves into the run folder and print where; returns the exit status."""
    run_folder = RunFolder(options.run_folder)
    run_folder.load_config()  # is it a run folder at all?
    if not run_folder.log.path.exists():
        raise RunError(f"{run_folder.path} has no metrics.jsonl: nothing was trained there")
    for path in draw(run_folder):
        print(path)
    return 0


def draw(run_folder):
    """Write loss.png and learning_rate.png into a RunFolder; returns their paths."""
    config, _ = run_folder.load_config()
    entries = run_folder.log.entries()
    logged = {entry["step"] for entry in entries}
    package = [entry for entry in run_folder.package_log.entries() if entry["step"] in logged]
    loss_curves = partial(plots.loss_curves, task=task_class(config), package=package)
    curves = loss_curves, plots.learning_rate
    for path, draw_curves in zip(run_folder.pictures, curves, strict=True):
        with written_whole(path) as file:
            draw_curves(entries, file)
    return run_folder.pictures
