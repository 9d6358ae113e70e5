"""A run that was not trained where it is: made of a model that there is, and of its vocabulary."""

import shutil

from minitransformer.inference.trained_on_text import OF_TEXT
from minitransformer.runs.checkpoint.arrays import model_arrays
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.language_modelling import unit_of
from minitransformer.training.recipe import Recipe


def make_run(path, model, vocabulary, origin):
    """Write the run folder of a model, all of it or nothing.

    Args:
        path: of the folder.
        model: a LanguageModel.
        vocabulary: of its texts.
        origin: one of UNSCORED in ``runs/parameters.py``.

    Raises:
        RunError, OSError: the folder is not free, or cannot be written.
    """
    folder, config = RunFolder(path, OF_TEXT), model.config
    folder.require_free()
    there = folder.path.exists()
    before = {*folder.path.glob("*")}  # what a killed run left, at most
    choices = {"kind": config.kind, **{f.name: getattr(config, f.name) for f in config.choices()}}
    data = {"corpus": "text", "unit": unit_of(vocabulary)}
    recipe = Recipe.from_dict({"data": data, "model": choices})
    try:
        folder.create()
        folder.keep(vocabulary=vocabulary)
        folder.save_config(config, recipe.as_dict(), begun_on="cpu")
        folder.bind(recipe.identity(), texts={})
        folder.save_model(model_arrays(model), origin)
    except BaseException:
        for path in {*folder.path.glob("*")} - before if there else {folder.path}:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        raise
