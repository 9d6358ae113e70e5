"""A small recipe of each task, of data that are made up here; another task wants one more."""

import numpy as np
from digits import DigitsConfig
from tiny_run import COMMON, recipe_of, tiny_recipe

from minitransformer.models.registry import config_class

TEXT = "".join(f"line {i} says {'abcdefgh'[i % 8]}\n" for i in range(40))

ANIMALS, VERBS = ["dog", "cat", "horse", "cow"], ["runs", "sleeps", "eats", "waits"]
SENTENCES = [(a, v) for a in ANIMALS for v in VERBS] * 3
WORDS = "".join(f"the\tD\n{a}\tN\n{v}\tV\n.\tS\n\n" for a, v in SENTENCES)
WHOLE = "".join(f"{v[0]}\tthe {a} {v}.\n" for a, v in SENTENCES)


def of_file(kind, path, content, **fields):
    """A Recipe for a kind that does not translate, of what is then in the file at ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return recipe_of(kind, COMMON | dict(num_layers=1), **dict(label_smoothing=0.0) | fields)


def language_modelling(folder, content=TEXT, **changes):
    path = folder / "text.txt"
    fields = dict(corpus="text", text=str(path), unit="characters", max_length=12) | changes
    return of_file("language-model", path, content, **fields)


def masked_language_modelling(folder, content=TEXT, **changes):
    path = folder / "text.txt"
    fields = dict(corpus="text", text=str(path), vocabulary_size=40, max_length=12) | changes
    return of_file("masked-language-model", path, content, **fields)


def tagging(folder, content=WORDS, **changes):
    path = folder / "labels.tsv"
    fields = dict(corpus="labelled", labelled=str(path), vocabulary_size=40) | changes
    return of_file("tagger", path, content, **fields)


def classification(folder, **changes):
    """Pictures with noise on them; those of each class are light in another corner."""
    folder.mkdir(parents=True, exist_ok=True)
    labels = np.arange(90) % 3
    pictures = np.random.default_rng(0).integers(0, 216, (90, 16, 16, 3), np.uint8)
    for picture, label in zip(pictures, labels, strict=True):
        picture[8 * (label // 2) :, 8 * (label % 2) :][:8, :8] += 40
    path = folder / "pictures.npz"
    np.savez(path, pictures=pictures, labels=labels, classes=["north west", "north east", "south"])
    fields = dict(corpus="npz", pictures=str(path), crop_padding=1, num_features=4)
    fields |= dict(batch_tokens=20, label_smoothing=0.0)
    return recipe_of("small-network", **fields | changes)


def telling_digits(folder=None, **changes):
    """Its pictures are in no folder."""
    fields = dict(epochs=4, batch_tokens=16, label_smoothing=0.0) | changes
    return recipe_of(DigitsConfig.kind, **fields)


RECIPES = {
    "translation": tiny_recipe,
    "language modelling": language_modelling,
    "masked language modelling": masked_language_modelling,
    "tagging": tagging,
    "classification": classification,
    DigitsConfig.task: telling_digits,
}


TINY = {  # what makes a kind of model small that is not in all recipes of its task
    "recurrent": dict(d_hidden=8),
    "alexnet": dict(width_factor=1 / 64, start="he", peak_learning_rate=1e-3),
    "residual-network": dict(depth=8, width_factor=0.25),
    "vision-transformer": dict(d_model=8, num_heads=2, d_ff=16, num_layers=1),
}


def recipe_of_task(task, folder, **changes):
    """A small Recipe of any task; what it is of is then in the folder."""
    return RECIPES[task](folder, **changes)


def recipe_of_kind(kind, folder, **changes):
    """A small Recipe of any kind of model, by that of its task."""
    recipe = recipe_of_task(config_class(kind).task, folder, **changes).with_value("kind", kind)
    return recipe.with_values(TINY.get(kind, {}))
