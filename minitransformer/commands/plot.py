"""``minitransformer plot``: the curves of a run, also while it trains."""

from minitransformer import plots
from minitransformer.checkpoint import CheckpointError
from minitransformer.commands.arguments import add_run_folder
from minitransformer.regular_file import written_whole
from minitransformer.run_folder import RunFolder

PICTURES = {"loss.png": plots.loss_curves, "learning_rate.png": plots.learning_rate}


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
        raise CheckpointError(f"{run_folder.path} has no metrics.jsonl: nothing was trained there")
    for path in draw(run_folder):
        print(path)
    return 0


def draw(run_folder):
    """Write loss.png and learning_rate.png into a RunFolder; returns their paths."""
    entries = run_folder.log.entries()
    paths = [run_folder.path / name for name in PICTURES]
    for path, picture in zip(paths, PICTURES.values(), strict=True):
        with written_whole(path) as file:
            picture(entries, file)
    return paths
