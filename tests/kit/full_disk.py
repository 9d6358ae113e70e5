"""A disk on which no more has room; a limit on the size of files stands for it."""

from contextlib import contextmanager

import pytest


@contextmanager
def full_disk(room=0):
    """Inside, no file grows beyond ``room`` bytes."""
    resource = pytest.importorskip("resource")
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, unlimited[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
