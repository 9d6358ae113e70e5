"""Reading files that somebody else may have put there: regular ones only, and no larger than told.

Under the name of a file, a folder from elsewhere can hold a pipe, which waits for ever for somebody
to write into it, or a link to a device that never ends.
"""

import errno
import os
import stat


class IrregularFileError(OSError):
    """What has the name of a file is something else, or larger than such a file may be."""


def open_regular(path):
    """A regular file, or what a link to one leads to, opened to read bytes.

    Raises:
        IrregularFileError: it is a folder, a pipe, a socket or a device.
        OSError: it does not exist or may not be opened.
    """
    return open(path, "rb", opener=_regular)


def read_regular(path, most):
    """All bytes of a regular file, ``most`` at most.

    Raises:
        IrregularFileError: there are more, or it is no regular file.
        OSError: it does not exist or may not be opened.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise IrregularFileError(
                errno.EFBIG, f"such a file has {most:,} bytes at most, and this one more", str(path)
            )
        return file.read(size)


def _regular(path, flags):
    # Without O_NONBLOCK opening a pipe would wait for a writer. Windows has neither.
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise IrregularFileError(errno.EINVAL, "this is no regular file", str(path))
