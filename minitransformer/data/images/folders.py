"""Folders of pictures, one for each class: ``ROOT/daisy/17.png`` is a daisy."""

import os
from pathlib import Path

import numpy as np

from minitransformer.core.errors import listed
from minitransformer.data.errors import CorpusError, PictureError
from minitransformer.data.images.files import open_picture
from minitransformer.data.images.pictures import Pictures


def read_folder(path, size, channels=None):
    """The Pictures in a folder's folders, whose names are the classes, and what is left out.

    Classes and pictures come in the order of their names. What begins with a dot is passed over.

    Args:
        size: (Y, X) that they are brought to, as :func:`open_picture` does.
        channels: C, 1 for grey or 3 for colour; by default grey if all are, and colour otherwise.

    Returns:
        (Pictures, a list of lines, each of what was left out and why)

    Raises:
        CorpusError: there is no folder, or no picture in it.
        MissingLibraryError: there is no Pillow.
    """
    folders, skipped = [], []
    for entry in _entries(path):
        if entry.is_dir():
            folders.append(entry)
        else:
            skipped.append(f"{entry} is in no folder of a class")
    files = [(folder, file) for folder in folders for file in _entries(folder)]
    pictures = np.empty((len(files), *size, 3), np.uint8)
    plain = "L" if channels == 1 else "RGB"
    of_classes, colour = [], False
    for folder, file in files:
        try:
            image = open_picture(file, size)
        except PictureError as error:
            skipped.append(str(error))
            continue
        colour = colour or image.mode == "RGB"
        pictures[len(of_classes)] = image.convert(plain).convert("RGB")
        of_classes.append(folder.name)
    classes = sorted(set(of_classes))
    skipped += [
        f"{folder} has no picture, and is no class"
        for folder in folders
        if folder.name not in classes
    ]
    if not classes:
        raise CorpusError(
            f"{path} has no pictures; put those of each class, PNG or JPEG, into a folder in it "
            "that has the name of the class" + (f" ({skipped[0]})" if skipped else "")
        )
    channels = channels or (3 if colour else 1)
    pictures = pictures[: len(of_classes), :, :, :channels].copy()  # (N, Y, X, C)
    labels = np.array([classes.index(name) for name in of_classes], np.int64)
    return Pictures(pictures, labels, tuple(classes)), skipped


def read_others(path, statistics):
    """As :func:`read_folder`, but brought to the form and the classes of pictures that are known.

    Args:
        statistics: the PictureStatistics of those.

    Raises:
        CorpusError: a folder is none of their classes.
    """
    *size, channels = statistics.mean.shape
    found, skipped = read_folder(path, size, channels)
    classes = statistics.classes
    if strange := [name for name in found.classes if name not in classes]:
        raise CorpusError(
            f"{Path(path) / strange[0]} is no class of the model; choose {listed(classes)} as the "
            "name of the folder"
        )
    labels = np.array([classes.index(name) for name in found.classes])[found.labels]
    return Pictures(found.pictures, labels, classes), skipped


def _entries(path):
    """What is in a folder, in the order of the names."""
    try:
        names = sorted(os.listdir(path))
    except OSError as error:
        raise CorpusError(f"{path} cannot be read as a folder: {error.strerror}") from error
    return [Path(path) / name for name in names if not name.startswith(".")]
