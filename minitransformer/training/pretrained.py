"""What a training may begin with in place of random numbers: what another run has learned.

All parameters and buffers are taken but those of the other model's head: they are what that says,
and not what this one is to say.
"""

from dataclasses import dataclass

import numpy as np

from minitransformer.core.backend import CPU
from minitransformer.models.config import ModelConfig
from minitransformer.models.registry import config_class
from minitransformer.runs.checkpoint.arrays import (
    BUFFERS,
    PARAMETERS,
    load_frozen,
    load_model_arrays,
    model_arrays,
)
from minitransformer.runs.checkpoint.fields import require_fields
from minitransformer.runs.checkpoint.file import CheckpointError
from minitransformer.tasks.task import run_at, task_class
from minitransformer.training.recipe import RecipeError


@dataclass(frozen=True, eq=False)
class Pretrained:
    """Parameters, and buffers, to begin with.

    Attributes:
        arrays: by their names in a checkpoint.
        origin: what they are, in words.
        config: of the model that has learned them, and
        kept: what its run keeps; None where another run has kept the parameters alone.
    """

    arrays: dict[str, np.ndarray]
    origin: str
    config: ModelConfig | None = None
    kept: dict | None = None

    @classmethod
    def of_run(cls, path):
        """What the run in the folder ``path`` has learned, if all its files belong together.

        Raises:
            RunError, VocabularyError, OSError: as for :meth:`RunParameters.load_trained`.
        """
        run = run_at(path)
        run.bind()
        config, _ = run.load_config()
        if config.adapted:  # what another one begins with has what its adapters have learned in it
            model, origin = run.load_trained(CPU)
            config, arrays = model.config, model_arrays(model)
        else:
            arrays, origin = run.load_parameters()
        heads = tuple(f"{PARAMETERS}/{name}" for name in config.own_head)
        taken = {
            name: array
            for name, array in arrays.items()
            if name.startswith((f"{PARAMETERS}/", f"{BUFFERS}/")) and not name.startswith(heads)
        }
        kept = {name: run.load_kept(name) for name in run.kept}
        return cls(taken, f"{run.path}, {origin}", config, kept)

    @classmethod
    def kept_in(cls, run):
        """What the training in a RunFolder began with, or None where that was random numbers.

        Raises:
            CheckpointError: it is damaged.
        """
        loaded = run.load_kept("beginning")
        if loaded is None:
            return None
        arrays, state = loaded
        return cls(arrays, require_fields(run.beginning, state, origin=str)["origin"])

    def as_file(self):
        """(arrays, state) of the file in which a run keeps them, whatever becomes of the other."""
        return self.arrays, {"origin": self.origin}

    def fitted(self, recipe, chosen):
        """The recipe with the sizes of the other model and of what its run keeps.

        The probabilities of dropout stay those of the recipe, and so does the rank of adapters.

        Args:
            recipe: a Recipe.
            chosen: the fields of it that the user has chosen, by name; the others may change.

        Raises:
            RecipeError: its kind of model cannot begin so, or a chosen field is another one there.
        """
        kind = recipe.model["kind"]
        kinds = config_class(kind).begins_with
        if self.config.kind not in kinds:
            may = f"can begin with {' or '.join(kinds)}" if kinds else "begins with random numbers"
            raise RecipeError(
                f"{self.origin}: it is a model of kind {self.config.kind!r}, and a training of "
                f"kind {kind!r} {may}"
            )
        there = {
            name: getattr(self.config, name)
            for name in recipe.model
            if name not in ("kind", "lora") and not name.endswith("dropout")
        }
        fitting = task_class(self.config).fitting(self.kept)
        there |= {name: value for name, value in fitting.items() if name in recipe.values()}
        for name, value in there.items():
            if chosen.get(name, value) != value:
                raise RecipeError(
                    f"{name} is {value} in {self.origin}, and {chosen[name]} here; leave it out"
                )
        return recipe.with_values(there)

    def put_into(self, model):
        """Let a new Model begin with them, or its adapters have them to adapt.

        Raises:
            CheckpointError: the model has no parameter of some name, or one of another shape.
        """
        if model.config.adapted:
            load_frozen(model, self.arrays, self.origin)
            return
        try:
            load_model_arrays(model, model_arrays(model) | self.arrays)
        except CheckpointError as error:
            here, there = (getattr(config, "shape", None) for config in (model.config, self.config))
            if there is None or here == there:
                raise
            raise CheckpointError(f"{self.origin}: {_in_words(here, there)}") from error


def _in_words(here, there):
    """How the pictures (Y, X, C) of a training differ from those of another, and what to do."""
    y, x, channels = there
    ways = []
    if here[:2] != there[:2]:
        ways.append(f"bring them to {y} × {x}, those of a folder with --picture-size {y}")
    if here[2] != channels:
        ways.append("make them grey" if channels == 1 else "give them colours")
    sizes = " × ".join(map(str, there)), " × ".join(map(str, here))
    return f"its pictures are {sizes[0]}, and these {sizes[1]}; {', and '.join(ways)}"
