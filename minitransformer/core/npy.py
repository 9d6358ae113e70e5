"""Arrays in the .npy format of somebody else's files, of which nothing is ever unpickled."""

import math

import numpy as np


def read_npy(file, name, size):
    """The array of numbers or truth values in an open file; it cannot be written to.

    Args:
        name: of the file, for messages.
        size: its bytes.

    Raises:
        ValueError: it is another format, or an array of other entries, or column by column.
    """
    shape, dtype = read_header(file, name)
    if dtype.kind not in "biuf":
        raise ValueError(
            f"{name} holds {dtype}, and only plain numbers, whole or not, and truth values are read"
        )
    return read_entries(file, name, size, shape, dtype)


def read_header(file, name):
    """(shape, dtype) of the array in an open file; its entries, of whatever kind, stand next.

    Raises:
        ValueError: it is another format, or an array column by column.
    """
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"{name} has version {version} of the .npy format")
    try:  # plain arrays have some 100 bytes; a header of 10,000 can exhaust Python's parser
        header = np.lib.format.read_array_header_1_0(file, max_header_size=1000)
    except ValueError as error:
        raise ValueError(f"the header of {name} is not that of a plain array") from error
    shape, fortran_order, dtype = header
    if fortran_order:
        raise ValueError(
            f"{name} holds {dtype} column by column (np.ascontiguousarray mends it), and only "
            "plain numbers row by row are read"
        )
    return shape, dtype


def read_entries(file, name, size, shape, dtype):
    """The array whose header was read, to the end of a file of ``size`` bytes.

    Raises:
        ValueError: so many entries are not there; nothing was read then.
    """
    wanted, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if wanted != there:
        raise ValueError(f"{name} should have {wanted} bytes after its header, and has {there}")
    return np.frombuffer(file.read(), dtype).reshape(shape)
