"""Runs side by side: which differ in nothing but chance, and how the validations of each went."""

from dataclasses import dataclass

from minitransformer.models.config import ModelConfig
from minitransformer.runs.checkpoint.fields import number, require_fields
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.task import task_class
from minitransformer.training.pretrained import Pretrained
from minitransformer.training.recipe import UNBOUND, Recipe

CHANCE = {"seed", "shards", *UNBOUND}  # in which runs of one group may differ


@dataclass(frozen=True)
class ValidatedRun:
    """A run, and how its validations went.

    Attributes:
        folder: its RunFolder.
        config: of its model.
        seed: of its training.
        fields: what it was made of, by name; those of chance and the places of its data aside.
        validations: entries of its log, one an epoch.
        best: that of the best epoch, or None where nothing was validated yet.
    """

    folder: RunFolder
    config: ModelConfig
    seed: int
    fields: dict
    validations: list
    best: dict

    @classmethod
    def read(cls, folder):
        """That of a RunFolder.

        Raises:
            RunError, RecipeError, OSError: a file is damaged or missing.
        """
        config, _ = folder.load_config()
        recipe, score = Recipe.of_run(folder), task_class(config).score
        validations = [entry for entry in folder.log if entry["kind"] == "validation"]
        for entry in validations:
            require_fields(
                folder.log.path, entry, nll=number, seconds=number, **{score.name: number}
            )
        best = score.best(validations, key=lambda entry: entry[score.name]) if validations else None
        fields = {n: v for n, v in recipe.without_paths().items() if n not in CHANCE}
        if folder.is_trained_on_own():
            fields["functions"] = "a learner's"
        if pretrained := Pretrained.kept_in(folder):
            fields["began with"] = pretrained.origin
        return cls(folder, config, recipe.training.seed, fields, validations, best)

    def seconds_to(self, value, score):
        """How long it trained until a validation was no worse than ``value``."""
        reaching = (e for e in self.validations if not score.better(value, e[score.name]))
        return next(reaching)["seconds"]


def grouped(runs):
    """Runs by what they differ in: a dict from a letter to a list of them, in their order."""
    groups = []
    for run in runs:
        of_it = next((group for group in groups if group[0].fields == run.fields), None)
        if of_it is None:
            groups.append([run])
        else:
            of_it.append(run)
    return {_letters(i): group for i, group in enumerate(groups)}


def _letters(i):
    """A, B, …, Z, AA, AB, …"""
    more, last = divmod(i, 26)
    return (_letters(more - 1) if more else "") + chr(ord("A") + last)
