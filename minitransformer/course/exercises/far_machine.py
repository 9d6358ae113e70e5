"""A second machine for whoever has one: arrays that NumPy computes and NumPy may not touch.

    far = FarMachine()
    x = far.asarray(np.ones(3))        an upload, counted
    y = far.exp(x) * 2                 stays there
    y.get()                            a wait and a download, counted

What CuPy refuses is refused here, and what costs time on a GPU is counted, so that a function can
be tried for both places on a computer that has only one. NumPy's own functions are refused as well,
where CuPy would let ``np.exp(x)`` pass and compute it. It is no faster than NumPy.
"""

import math
import operator

import numpy as np

OPERATORS = "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"
COMPARISONS = "lt", "le", "eq", "ne", "gt", "ge"
UNARY = "neg", "invert", "abs"
WITHOUT_WAITING = "shape", "ndim", "size", "dtype", "nbytes", "strides"


class FarMachine:
    """The namespace of the far arrays, and the counts of what happened there.

    Attributes:
        uploads: arrays copied from here to there.
        waits: times that a value was wanted here: each waits for the machine, and downloads.
        gemms: matrix products of two matrices that were asked for.
    """

    def __init__(self):
        self.uploads = self.waits = self.gemms = 0

    def asarray(self, x, dtype=None):
        """``x`` there: itself if it is there already, an upload if not."""
        if isinstance(x, FarArray):
            return x if dtype is None else x.astype(dtype)
        self.uploads += 1
        return FarArray(self, np.array(x, dtype=dtype))

    def __getattr__(self, name):
        """NumPy's function of that name, for far arrays."""
        thing = getattr(np, name)
        if isinstance(thing, type) or not callable(thing):
            return thing
        return lambda *args, **kwargs: self.run(thing, *args, **kwargs)

    def run(self, function, *args, **kwargs):
        """Let NumPy's ``function`` work on far arrays, and leave the result there."""
        args = [_opened(value) for value in args]
        kwargs = {name: _opened(value) for name, value in kwargs.items()}
        result = function(*args, **kwargs)
        if function in (operator.matmul, np.matmul):
            first, second = args
            self.gemms += math.prod(np.broadcast_shapes(first.shape[:-2], second.shape[:-2]))
        elif function in (np.dot, np.tensordot):
            self.gemms += 1
        if isinstance(result, tuple | list):
            return type(result)(self._closed(value) for value in result)
        return self._closed(result)

    def _closed(self, value):
        return FarArray(self, value) if isinstance(value, np.ndarray | np.generic) else value


class FarArray:
    """An array on the far machine. A sum of it is an array of no axes there, never a number."""

    __array_ufunc__ = None  # NumPy's operators leave mixed operands to ours, which refuse them
    __hash__ = None

    def __init__(self, machine, data):
        self._machine = machine
        self._data = np.asarray(data)

    def __array_namespace__(self):
        return self._machine

    def __array__(self, *args, **kwargs):
        raise TypeError("a far array does not turn into a NumPy array by itself; use .get()")

    def get(self):
        """A NumPy array with the values, when they are done."""
        self._machine.waits += 1
        return self._data.copy()

    def __float__(self):
        return float(self.get())

    def __int__(self):
        return int(self.get())

    def __bool__(self):
        return bool(self.get())

    def item(self):
        return self.get().item()

    def tolist(self):
        return self.get().tolist()

    def __len__(self):
        return len(self._data)

    def __getitem__(self, key):
        keys = key if isinstance(key, tuple) else (key,)
        if any(isinstance(k, FarArray) and k.dtype == bool for k in keys):
            self._machine.waits += 1  # how long is the result? That depends on the values
        return self._machine.run(operator.getitem, self, key)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(f"a far array has no {name!r}")
        value = getattr(self._data, name)
        if name in WITHOUT_WAITING:
            return value
        if callable(value):
            return lambda *args, **kwargs: self._machine.run(value, *args, **kwargs)
        return FarArray(self._machine, value)

    def __repr__(self):
        return f"FarArray(shape={self.shape}, dtype={self.dtype})"


def _opened(value):
    """What NumPy is to work on; refuses arrays from here."""
    if isinstance(value, FarArray):
        return value._data
    if isinstance(value, np.ndarray):
        raise TypeError(
            f"a NumPy array of shape {value.shape} met a far array; bring it there with asarray"
        )
    if isinstance(value, tuple | list):
        return type(value)(_opened(entry) for entry in value)
    return value


def _method(function, turned=False):
    def method(self, *others):
        operands = (*others, self) if turned else (self, *others)
        return self._machine.run(function, *operands)

    return method


for _name in OPERATORS + COMPARISONS + UNARY:
    # Without __iadd__ and its like, Python takes x += y for x = x + y.
    setattr(FarArray, f"__{_name}__", _method(getattr(operator, f"__{_name}__")))
for _name in OPERATORS:
    setattr(FarArray, f"__r{_name}__", _method(getattr(operator, f"__{_name}__"), turned=True))
