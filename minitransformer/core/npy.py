"""Arrays in the .npy format of somebody else's files, of which nothing is ever unpickled."""

import numpy as np


def read_npy(file, name, kinds="biuf"):
    """The array in an open file, read to its end; it cannot be written to.

    Args:
        name: of the file, for messages.
        kinds: what entries may be, as NumPy abbreviates it; by default numbers and truth values.

    Raises:
        ValueError: it is another format, or an array of other entries, or column by column.
    """
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"{name} has version {version} of the .npy format")
    try:  # plain arrays have some 100 bytes; a header of 10,000 can exhaust Python's parser
        header = np.lib.format.read_array_header_1_0(file, max_header_size=1000)
    except ValueError as error:
        raise ValueError(f"the header of {name} is not that of a plain array") from error
    shape, fortran_order, dtype = header
    if dtype.kind not in kinds or fortran_order:
        order = " column by column (np.ascontiguousarray mends it)" if fortran_order else ""
        raise ValueError(f"{name} holds {dtype}{order}, and only plain numbers are read")
    return np.frombuffer(file.read(), dtype).reshape(shape)
