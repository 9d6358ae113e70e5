"""Pictures in an ``.npz`` file, as NumPy writes it.

    np.savez("flowers.npz", pictures=pictures, labels=labels, classes=["aster", "daisy"])

It may be compressed, as by ``np.savez_compressed``.
"""

import math
import zipfile

import numpy as np

from minitransformer.core.npy import read_entries, read_header
from minitransformer.core.regular_file import IrregularFileError, open_regular
from minitransformer.data.errors import CorpusError
from minitransformer.data.images.pictures import Pictures

MOST = 2**32  # bytes of all arrays together
MOST_OF_NAMES = 2**24  # bytes of them that are those of names
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
                    shape, dtype = read_header(member, name)
                    _require_form(name, shape, dtype)
                    arrays[name] = read_entries(member, name, sizes[f"{name}.npy"], shape, dtype)
    if "classes" in arrays:
        arrays["classes"] = _names(arrays["classes"])
    return arrays


def _require_form(name, shape, dtype):
    """Refuse an array by its header: of a bomb nothing else is unpacked."""
    if name == "pictures":
        right = dtype == np.uint8 and len(shape) in (3, 4)
        form = "uint8, 0 to 255, and (N, Y, X, C) or (N, Y, X)"
        if dtype.kind == "f":
            form += "; of x from 0 to 1 they are (255 * x).round().astype(np.uint8)"
    elif name == "labels":
        right, form = dtype.kind in "iu" and len(shape) == 1, "whole numbers, one for each picture"
    else:
        size = math.prod(shape) * dtype.itemsize
        right = dtype.kind in "iuU" and len(shape) == 1 and size <= MOST_OF_NAMES
        form = f"a list of names, in {MOST_OF_NAMES:,} bytes at most"
    if not right:
        raise ValueError(f"{name} of type {dtype} and shape {shape}; they must be {form}")


def _names(classes):
    try:
        return list(map(str, classes))
    except SystemError as error:  # so NumPy meets a number that is no letter's
        raise ValueError("the name of a class is no text") from error


def _pictures(pictures, labels, classes=None):
    if pictures.ndim == 3:
        pictures = pictures[..., None]  # (N, Y, X, 1)
    labels = labels.astype(np.int64)
    if classes is None:
        count = int(labels.max(initial=0)) + 1
        if count > MOST_CLASSES:
            raise CorpusError(f"a label is {count - 1}; name so many classes in an array classes")
        classes = range(count)
    return Pictures(pictures, labels, tuple(map(str, classes)))
