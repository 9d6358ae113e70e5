"""Fields of JSON that somebody else may have written: what is missing or of another kind."""

import math
import reprlib

from minitransformer.runs.checkpoint.file import CheckpointError

LARGEST = 2**53  # no counter comes so far, and a float holds all whole numbers up to it


def count(value):
    """a whole number, 0 or more"""
    return type(value) is int and 0 <= value < LARGEST


def number(value):
    """a number"""
    if type(value) is int:
        return abs(value) < LARGEST
    return type(value) is float and math.isfinite(value)


def require_fields(where, record, **kinds):
    """The dict ``record``, if it has a field of each name in ``kinds``, and each of its kind.

    Args:
        where: the file, and the place in it.
        kinds: :func:`count`, :func:`number`, or a type.

    Raises:
        CheckpointError: it is no dict, or a field is missing or of another kind.
    """
    if not isinstance(record, dict):
        raise CheckpointError(f"{where} is damaged: {reprlib.repr(record)} is no dict")
    for name, kind in kinds.items():
        if name not in record:
            raise CheckpointError(f"{where} is damaged: it has no {name}")
        value = record[name]
        if not (isinstance(value, kind) if isinstance(kind, type) else kind(value)):
            wanted = f"a {kind.__name__}" if isinstance(kind, type) else kind.__doc__
            raise CheckpointError(
                f"{where} is damaged: its {name} is {reprlib.repr(value)}, not {wanted}"
            )
    return record
