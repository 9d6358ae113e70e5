"""Token ids that are not what they should be: caught before they become wrong numbers."""

from contextlib import contextmanager
from contextvars import ContextVar

from minitransformer.core.backend import on_host

_checked = ContextVar("ids on a device have been checked", default=False)


@contextmanager
def ids_checked_before():
    """Inside, ids on a GPU are taken as they are, so that nothing waits for it to look at them."""
    token = _checked.set(True)
    try:
        yield
    finally:
        _checked.reset(token)


def check_token_ids(ids, vocabulary_size):
    """Raise unless ``ids`` are integers with 0 ≤ id < vocabulary_size.

    NumPy reads id −1 as the last row, CuPy wraps every id around: wrong numbers, no error. Ids on
    the host are checked there; for those on a GPU this waits for it.

    Raises:
        TypeError: the dtype is not an integer one.
        ValueError: an id is out of range.
    """
    if _checked.get() and not on_host(ids):
        return
    if ids.dtype.kind not in "iu":
        raise TypeError(f"token ids must be integers; their dtype is {ids.dtype}")
    if bool(((ids < 0) | (ids >= vocabulary_size)).any()):
        raise ValueError(
            f"token ids run from {int(ids.min())} to {int(ids.max())}, outside "
            f"0 <= id < {vocabulary_size}, the size of the vocabulary; "
            "was the text encoded with another vocabulary?"
        )
