"""Arrays that count: how many operations made them, and how many of these one after another.

    machine = CountingMachine()
    y, _ = relu(machine.asarray(x))
    machine.operations, machine.chain

A matrix product of (m, k) by (k, n) is m k n operations, each a multiplication and an addition; any
other function has as many as the larger of what it reads and what it makes has entries. Moving
entries about is none. Each array knows the longest chain of calls that leads to it: a machine of
any width has to take so many one after the other.
"""

import operator

import numpy as np

from minitransformer.course.exercises.far_machine import FarArray, FarMachine

# What makes no new number, and only says where numbers are.
MOVES = {
    *("getitem", "setitem", "reshape", "transpose", "swapaxes", "moveaxis", "repeat", "copy"),
    *("concatenate", "stack", "zeros", "zeros_like", "empty", "empty_like", "ones", "full"),
    *("broadcast_to", "expand_dims", "astype", "arange", "view", "ascontiguousarray"),
}


class CountingMachine(FarMachine):
    """The namespace of arrays that count.

    Attributes:
        operations: that all arrays so far took.
        chain: the most of their calls that depend on each other.
    """

    def __init__(self):
        super().__init__()
        self.operations = self.chain = 0
        self._depth = 0  # of what is being computed

    def asarray(self, x, dtype=None):
        """``x`` as an array that counts, at the beginning of all chains."""
        self._depth = 0
        return x if isinstance(x, FarArray) else self._closed(np.array(x, dtype=dtype))

    def run(self, function, *args, **kwargs):
        """Let NumPy's ``function`` work on arrays that count, and count it."""
        self._depth = max(map(_depth, (*args, *kwargs.values())), default=0)
        if function.__name__ not in MOVES:
            self._depth += 1
            self.chain = max(self.chain, self._depth)
        result = super().run(function, *args, **kwargs)
        if function.__name__ not in MOVES:
            self.operations += _operations(function, args, result)
        return result

    def _closed(self, value):
        closed = super()._closed(value)
        return CountingArray(self, value, self._depth) if isinstance(closed, FarArray) else closed


class CountingArray(FarArray):
    """An array with the length of the longest chain of calls behind it."""

    def __init__(self, machine, data, depth):
        super().__init__(machine, data)
        self._depth = depth

    def __getattr__(self, name):
        method = getattr(np.ndarray, name, None)
        if callable(method):  # with this array among the arguments
            return lambda *args, **kwargs: self._machine.run(method, self, *args, **kwargs)
        return self.transpose() if name == "T" else super().__getattr__(name)

    def __setitem__(self, key, value):
        self._machine.run(operator.setitem, self, key, value)
        self._depth = max(self._depth, _depth(value))


def _depth(value):
    """The longest chain behind an argument of a function."""
    if isinstance(value, tuple | list):
        return max(map(_depth, value), default=0)
    return value._depth if isinstance(value, CountingArray) else 0


def _operations(function, args, result):
    sizes = [x.size for x in (*args, result) if isinstance(x, FarArray)]
    if function in (operator.matmul, np.matmul):
        return result.size * args[0].shape[-1]
    return max(sizes)
