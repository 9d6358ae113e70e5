"""``python -m minitransformer.data.images.shapes FOLDER`` draws some of the shapes as PNG."""

import argparse
from pathlib import Path

import numpy as np

from minitransformer.core.libraries import library
from minitransformer.data.images.shapes import KINDS, shapes_corpus

COLUMNS, ENLARGED = 14, 2  # of samples.png, and by how much


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m minitransformer.data.images.shapes",
        description="Draw samples.png, shapes to train on, a row for each kind; and of each kind "
        "the first one of the test split, in a file of its name.",
    )
    parser.add_argument("folder", type=Path, help="where to, datasets/shapes in this repository")
    folder = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    corpus = shapes_corpus()
    rows = corpus["train"].pictures[: COLUMNS * len(KINDS), :, :, 0]
    rows = rows.reshape(COLUMNS, len(KINDS), *rows.shape[1:])  # (COLUMNS, kinds, Y, X)
    samples = rows.transpose(1, 2, 0, 3).reshape(len(KINDS) * rows.shape[2], -1)
    _save(folder / "samples.png", samples.repeat(ENLARGED, axis=0).repeat(ENLARGED, axis=1))
    for kind, picture in zip(KINDS, corpus["test"].pictures, strict=False):
        _save(folder / f"{kind.replace(' ', '-')}.png", picture[:, :, 0])


def _save(path, grey):
    library("PIL.Image", "a file of a picture").fromarray(np.ascontiguousarray(grey)).save(path)


if __name__ == "__main__":
    main()
