"""What the first of several processes alone touches, for all: a folder of files."""

from functools import partial


class OnFirst:
    """An object whose methods are called in the first process; all get what they return or raise.

    So are those of the objects that it has, such as a log. What else it has, such as a path, each
    process reads from its own.

    Args:
        target: the object.
        processes: Alone, or an Mpi, all of which call the same methods in the same order.
    """

    def __init__(self, target, processes):
        self._target, self._processes = target, processes

    def __getattr__(self, name):
        value = getattr(self._target, name)
        if callable(value):
            return lambda *args, **named: self._processes.first(partial(value, *args, **named))
        return OnFirst(value, self._processes) if hasattr(value, "__dict__") else value
