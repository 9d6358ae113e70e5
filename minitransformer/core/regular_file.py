"""Files in folders that somebody else may have put together: what is read, and how one is written.

Under the name of a file, a folder from elsewhere can hold a pipe, which waits for ever for somebody
to write into it, a link to a device that never ends, or one to a file that is none of its business.
So only regular files are read, and no larger than told. A file that is written is another one at
first, which takes the name, from whatever had it, when it is whole.
"""

import errno
import math
import os
import stat
from contextlib import contextmanager
from functools import partial
from pathlib import Path


class IrregularFileError(OSError):
    """What has the name of a file is something else, or larger than such a file may be."""


def open_regular(path, most=math.inf):
    """A regular file, or what a link to one leads to, opened to read bytes, ``most`` at most.

    Raises:
        IrregularFileError: there are more, or it is a folder, a pipe, a socket or a device.
        OSError: it does not exist or may not be opened.
    """
    return open(path, "rb", opener=partial(_regular, most))


def read_regular(path, most):
    """All bytes of a regular file, ``most`` at most.

    Raises:
        IrregularFileError: there are more, or it is no regular file.
        OSError: it does not exist or may not be opened.
    """
    with open_regular(path, most) as file:
        return file.read(os.fstat(file.fileno()).st_size)


@contextmanager
def written_whole(path):
    """A file to write bytes to, at ``path`` only when all of them are on the disk.

    Until then it has a longer name, which ends with the number of the process and ``.tmp``: all
    that a process killed in between leaves.

    Raises:
        OSError: it cannot be written; names ``path``. What was there before is untouched.
    """
    path = Path(path)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with errors_named(path):
        temporary.unlink(missing_ok=True)
        try:
            with open(temporary, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)  # it is there only after a failure


@contextmanager
def errors_named(path):
    """Inside, an OSError is of the file at ``path``: that of a full disk comes without a name."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


def _regular(most, path, flags):
    # Without O_NONBLOCK opening a pipe would wait for a writer. Windows has neither.
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    status = os.fstat(descriptor)
    number, problem = errno.EINVAL, "this is no regular file"
    if stat.S_ISREG(status.st_mode):
        if status.st_size <= most:
            return descriptor
        number, problem = errno.EFBIG, f"such a file has {most:,} bytes at most, and this one more"
    os.close(descriptor)
    raise IrregularFileError(number, problem, str(path))
