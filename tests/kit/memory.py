"""How much memory something takes."""

import tracemalloc
from contextlib import contextmanager


@contextmanager
def takes_at_most(most_bytes):
    """Inside, there are never more bytes than that beside what there was before."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < most_bytes
