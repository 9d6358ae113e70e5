"""Trainings that are made once: one that was cut off goes on, and one that is over stays."""

import sys

from minitransformer.commands.cli import main as minitransformer
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.task import run_at


def trained(folder, recipe, *options):
    """The RunFolder of a training that is over; ends the script where it cannot be made.

    Args:
        folder: of the run.
        recipe, options: as for ``minitransformer train``.
    """
    run = RunFolder(folder)
    if not run.model.exists():
        begun = run.config.exists()
        command = ["--resume", folder] if begun else [recipe, "--run-folder", folder, *options]
        if status := minitransformer(["train", *map(str, command)]):
            sys.exit(status)
    return run_at(folder)
