"""Pictures in an ``.npz`` file, as NumPy writes it.

    np.savez("flowers.npz", pictures=pictures, labels=labels, classes=["aster", "daisy"])

It may be compressed, as by ``np.savez_compressed``.
"""

import zipfile

import numpy as np

from minitransformer.core.npy import read_npy
from minitransformer.core.regular_file import IrregularFileError, open_regular
from minitransformer.data.errors import CorpusError
from minitransformer.data.images.pictures import Pictures

MOST = 2**34  # bytes of all arrays together
MOST_CLASSES = 10_000  # that labels without names may count


def read_npz(path):
    """The Pictures in a file; nothing in it is unpickled.

    Its arrays are ``pictures``, (N, Y, X, C) or of grey ones (N, Y, X), uint8; ``labels``, (N,),
    whole numbers from 0; and ``classes``, their names, which are the numbers where it is missing.

    Raises:
        CorpusError: the file is damaged, or something else; says what is wrong.
        OSError: it does not exist or may not be opened.
    """
    try:
        with open_regular(path) as file:
            return _pictures(**_arrays(file))
    except IrregularFileError as error:
        raise CorpusError(f"{path} is no .npz file: {error.strerror}") from error
    except CorpusError as error:
        raise CorpusError(f"{path}: {error}") from error


def _arrays(file):
    """The arrays of an open file, by name."""
    try:
        return _read(file)
    except MemoryError:
        raise
    except Exception as error:  # zipfile meets damage with any of a dozen types
        raise CorpusError(
            f"{error}; write it with np.savez, with arrays pictures, labels and classes"
        ) from error


def _read(file):
    with zipfile.ZipFile(file) as archive:
        sizes = {member.filename: member.file_size for member in archive.infolist()}
        if sum(sizes.values()) > MOST:
            raise ValueError(f"it says that it holds more than {MOST:,} bytes")
        arrays = {}
        for name in ("pictures", "labels", "classes"):
            if f"{name}.npy" in sizes or name != "classes":
                with archive.open(f"{name}.npy") as member:
                    arrays[name] = read_npy(member, name, "iuU")
    if "classes" in arrays:
        arrays["classes"] = _names(arrays["classes"])
    return arrays


def _names(classes):
    if classes.ndim != 1:
        raise ValueError(f"classes of shape {classes.shape}; they must be a list of names")
    try:
        return list(map(str, classes))
    except SystemError as error:  # so NumPy meets a number that is no letter's
        raise ValueError("the name of a class is no text") from error


def _pictures(pictures, labels, classes=None):
    if pictures.ndim == 3:
        pictures = pictures[..., None]  # (N, Y, X, 1)
    if labels.dtype.kind not in "iu":
        raise CorpusError(f"labels of type {labels.dtype}; they must be whole numbers")
    labels = labels.astype(np.int64)
    if classes is None:
        count = int(labels.max(initial=0)) + 1
        if count > MOST_CLASSES:
            raise CorpusError(f"a label is {count - 1}; name so many classes in an array classes")
        classes = range(count)
    return Pictures(pictures, labels, tuple(map(str, classes)))
