"""One training a folder: a lock that dies with its process.

The lock is the operating system's, on the open file ``training.lock`` of the run folder. It goes
when the file is closed, and so with its process, however that ends: a crash leaves a file that
nobody has locked, and the next training takes it over. What the file says, who holds the lock, is
read to people who have to wait. Nobody else asks for the lock: a run can be read while it trains.
"""

import os
import socket
import time
import warnings
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from minitransformer.core.regular_file import errors_named

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
try:
    import msvcrt
except ImportError:  # everywhere else
    msvcrt = None

NAME = "training.lock"
PATIENCE = 0.5  # seconds in which a training may end, or a beginning one write who it is
FAR = 2**30  # the byte that Windows locks: nobody can read what is locked there

_held = set()  # the locked files of this process


@contextmanager
def only_training(folder):
    """Hold the lock of a run folder, which is there.

    Where there are no locks, a warning says so.

    Raises:
        BlockingIOError: another process trains there; names it.
        OSError: the folder cannot be written to.
    """
    path = Path(folder) / NAME
    file = _locked(path)
    _held.add(file)
    try:
        now = datetime.now().isoformat(" ", "seconds")
        with errors_named(path):
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()} since {now}\n".encode())
        yield
    finally:
        _held.discard(file)
        if not file.closed:  # as in a fork
            if _is_at(path, file):
                with suppress(PermissionError):  # Windows removes no file that is open
                    path.unlink()
            file.close()


def _locked(path):
    """The file at ``path``, open and locked."""
    deadline = time.monotonic() + PATIENCE
    while True:
        file = _opened(path)
        try:
            _lock(file)
        except (BlockingIOError, PermissionError):  # what Linux and Windows call a lock in use
            holder = file.read(1000).decode(errors="replace").strip()
            file.close()
            if time.monotonic() > deadline:
                raise BlockingIOError(
                    f"a training in {path.parent} is under way: {holder or 'another process'}; "
                    "wait for its end or stop it, or choose another folder"
                ) from None
            time.sleep(0.02)
            continue
        except OSError as error:
            warnings.warn(
                f"{path} cannot be locked ({error}): see to it that nothing else trains there",
                stacklevel=2,
            )
        if _is_at(path, file):
            return file
        file.close()  # it was removed, by a training that ended between our opening and locking


def _opened(path):
    links = getattr(os, "O_NOFOLLOW", 0)  # the file is written to: never to what a link points at
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | links, 0o666), "r+b", buffering=0)


def _lock(file):
    if fcntl:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    elif msvcrt:
        file.seek(FAR)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        file.seek(0)
    else:
        raise OSError("Python has no locks of files on this system")


def _is_at(path, file):
    """Whether the open file is the one that others find at ``path``."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _let_go():
    """In a fork: its copy of the file would hold the lock for as long as it lives."""
    while _held:
        _held.pop().close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
