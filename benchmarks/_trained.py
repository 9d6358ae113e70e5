"""Trainings that are made once: one that was cut off goes on, and one that is over stays.

Nor is one made whose scores are in the file of results already, with the same settings.
"""

import copy
import sys

from _results import rows_of

from minitransformer.commands.cli import main as minitransformer
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.task import run_at

OF_A_MACHINE = ("training", "seed"), ("training", "shards"), ("data", "data_dir")


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


def trained_by(recipe, folder, *options):
    """The RunFolder of a training by a Recipe that is in no file; it is written beside the folder.

    Args:
        folder, options: as for :func:`trained`.
    """
    file = folder.with_name(f"{folder.name}.toml")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(recipe.as_toml(), encoding="utf-8")
    return trained(folder, file, *options)


def settings_of(recipe):
    """Those of a Recipe that decide what comes of it, but for the seed."""
    sections = copy.deepcopy(recipe.as_dict())
    for section, name in OF_A_MACHINE:
        del sections[section][name]
    return sections


def scored_before(file, settings):
    """The scores in a file of results, by seed, in its row of these settings; {} for none."""
    return {
        scores["seed"]: scores
        for row in rows_of(file)
        if row["settings"] == settings
        for scores in row["seeds"]
    }


def require_settings(run, recipe, settings):
    """End the script where a run was trained otherwise.

    Args:
        run, recipe: the RunFolder and its Recipe.
        settings: those of :func:`settings_of` that are wanted.
    """
    if settings_of(recipe) != settings:
        raise SystemExit(f"{run.config} has other settings than are wanted; move the run away")
