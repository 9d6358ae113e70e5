"""How much memory something takes."""

import tracemalloc
from contextlib import contextmanager
from types import SimpleNamespace


@contextmanager
def traced():
    """Afterwards ``peak`` is the most bytes that there were, beside those that were before."""
    memory = SimpleNamespace()
    tracemalloc.start()
    try:
        yield memory
        _, memory.peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()


@contextmanager
def takes_at_most(most_bytes):
    """Inside, there are never more bytes than that beside what there was before."""
    with traced() as memory:
        yield
    assert memory.peak < most_bytes
