"""A strict stand-in for CuPy, computed by NumPy: it finds GPU mistakes without a GPU.

Its arrays are no ndarrays and refuse what CuPy's refuse: implicit conversion to NumPy, operands and
values from the host or from a device that is not current. (There are two devices; each thread
begins with the first.) Their reductions are 0-d arrays, never scalars. It refuses in addition what
goes wrong or slowly on a GPU without an error: an index out of range or from the host, one that is
assigned to twice, iteration element by element, NumPy's functions.

All there is stands below, and it is what the package uses. What is added must exist in CuPy 14 with
the same name and meaning. The one exception is ``__array_namespace__``, which CuPy lacks so far.
"""

import operator
import sys
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np

BINARY = "add", "sub", "mul", "truediv", "floordiv", "pow", "matmul", "and", "or", "xor", "rshift"
COMPARISONS = "lt", "le", "eq", "ne", "gt", "ge"
UNARY = "neg", "invert"
IN_PLACE = "iadd", "isub", "imul", "itruediv"
REDUCTIONS = "sum", "mean", "max", "min", "any"
PROPERTIES = "shape", "ndim", "size", "dtype", "strides", "flags"
FUNCTIONS = "exp", "log", "sin", "sqrt", "tanh", "clip", "isfinite", "maximum", "where"

ON_THE_HOST = bool, int, float, np.generic  # what an operand may be beside an array
AS_INDEX = int, np.integer, slice, type(None), type(...)  # and what an index may be

_records = []


class _Thread(threading.local):
    device = 0  # that is current


this_thread = _Thread()


class Record:
    """What happened while it was open (:meth:`StrictCupy.record`).

    Attributes:
        dtypes: of all arrays that came to be, temporaries included.
        waits: how often the host waited for the device.
        uploads: how often data was copied from the host.
    """

    def __init__(self):
        self.dtypes = set()
        self.waits = 0
        self.uploads = 0


class StrictArray:
    """An array on the device that is not there."""

    __array_ufunc__ = None  # makes NumPy's operators leave the matter to ours
    __hash__ = None
    __iter__ = None

    def __init__(self, data):
        self._data = np.asarray(data)  # a 0-d array where NumPy returned a scalar
        self._device = this_thread.device
        for record in _records:
            record.dtypes.add(self._data.dtype)

    def __array_namespace__(self):
        return strict

    def __array__(self, *args, **kwargs):
        raise TypeError("implicit conversion to a NumPy array is not allowed; use .get()")

    def __getattr__(self, name):
        raise AttributeError(_unknown("array attribute", name))

    @property
    def data(self):
        return SimpleNamespace(ptr=self._data.ctypes.data)

    def __repr__(self):
        return f"StrictArray({self._data})"

    def __len__(self):
        return len(self._data)

    def __getitem__(self, key):
        return StrictArray(self._data[_index(key)])

    def __setitem__(self, key, value):
        key = _index(key)
        if any(isinstance(k, np.ndarray) and k.dtype != bool for k in key):
            places = np.arange(self.size).reshape(self.shape)[key]
            if len(np.unique(places)) < places.size:
                raise IndexError("an index occurs twice; which of its values stays is undefined")
        self._data[key] = _operand(value)

    def __bool__(self):
        return bool(self.get())

    def __int__(self):
        return int(self.get())

    def __float__(self):
        return float(self.get())

    @property
    def T(self):
        return StrictArray(self._data.T)

    def get(self):
        _wait()
        return self._data.copy()

    def copy(self):
        return StrictArray(self._data.copy())

    def astype(self, dtype, copy=True):
        return self if not copy and self.dtype == dtype else StrictArray(self._data.astype(dtype))

    def fill(self, value):
        self._data.fill(_operand(value))

    def argmax(self, axis=None):
        return StrictArray(self._data.argmax(axis))

    def repeat(self, repeats, axis=None):
        return StrictArray(self._data.repeat(repeats, axis))

    def reshape(self, *shape):
        return StrictArray(self._data.reshape(*shape))

    def swapaxes(self, axis1, axis2):
        return StrictArray(self._data.swapaxes(axis1, axis2))


class StrictCupy:
    """The namespace, in the place of the module ``cupy``."""

    inf = np.inf

    def __init__(self):
        self.add = SimpleNamespace(at=_add_at)
        self.cuda = SimpleNamespace(Device=_Device, Stream=_Stream, get_current_stream=_Stream)
        self.random = SimpleNamespace(default_rng=_Generator)

    def __getattr__(self, name):
        raise AttributeError(_unknown("function", name))

    @contextmanager
    def record(self):
        record = Record()
        _records.append(record)
        try:
            yield record
        finally:
            _records.remove(record)

    def ascontiguousarray(self, x, dtype=None):
        return StrictArray(np.ascontiguousarray(_array(x), dtype))

    def asarray(self, x, dtype=None):
        if isinstance(x, StrictArray):
            return x if dtype is None else x.astype(dtype, copy=False)
        for record in _records:
            record.uploads += 1
        return StrictArray(np.array(x, dtype=dtype))

    def empty(self, shape, dtype=float):
        return StrictArray(np.full(shape, np.nan, dtype))  # whoever reads it before writing sees it

    def full(self, shape, value, dtype):
        return StrictArray(np.full(shape, _operand(value), dtype))

    def zeros(self, shape, dtype=float):
        return StrictArray(np.zeros(shape, dtype))

    def zeros_like(self, x):
        return StrictArray(np.zeros_like(_array(x)))

    def arange(self, stop):
        return StrictArray(np.arange(stop))

    def argsort(self, x, axis=-1):
        return StrictArray(np.argsort(_array(x), axis))

    def broadcast_to(self, x, shape):
        return StrictArray(np.broadcast_to(_array(x), shape))

    def concatenate(self, arrays, axis=0):
        return StrictArray(np.concatenate([_array(x) for x in arrays], axis))

    def stack(self, arrays, axis=0):
        return StrictArray(np.stack([_array(x) for x in arrays], axis))

    def take_along_axis(self, x, indices, axis):
        return StrictArray(np.take_along_axis(_array(x), _array(indices), axis))

    def nonzero(self, x):
        _wait()  # for how many there are, which is the length of the results
        return tuple(StrictArray(indices) for indices in np.nonzero(_array(x)))


class _Device:
    def __init__(self, index=0):
        if index not in (0, 1):
            raise ValueError("the stand-in has two devices")
        self._index = index

    def __enter__(self):
        self._before, this_thread.device = this_thread.device, self._index
        return self

    def __exit__(self, *exception):
        this_thread.device = self._before

    def use(self):
        this_thread.device = self._index

    def synchronize(self):
        _wait()


class _Stream:
    """All that was asked of it is done already."""

    ptr = 0  # as of CuPy's default one

    def __init__(self, non_blocking=False):
        pass

    def record(self):
        pass

    def wait_event(self, event):
        pass

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        pass


class _Generator:
    def __init__(self, seed):
        self._host = np.random.default_rng(seed)

    def random(self, size, dtype=float):
        return StrictArray(self._host.random(size, dtype))


def _add_at(target, indices, values):
    np.add.at(_array(target), _array(indices), _operand(values))


def _wait():
    for record in _records:
        record.waits += 1


def _unknown(what, name):
    return (
        f"the stand-in for CuPy has no {what} {name!r}; if CuPy 14 has it with the same meaning, "
        "add it to tests/kit/strict_cupy.py"
    )


def _array(x):
    if not isinstance(x, StrictArray):
        raise TypeError(f"expected an array on the device, got {type(x).__name__}")
    if x._device != this_thread.device:
        raise ValueError(f"the array is on device {x._device}, and {this_thread.device} is current")
    return x._data


def _operand(x):
    return x if isinstance(x, ON_THE_HOST) else _array(x)


def _index(key):
    keys = key if isinstance(key, tuple) else (key,)
    if any(isinstance(k, StrictArray) and k.dtype == bool for k in keys):
        _wait()  # as in nonzero
    raw = tuple(k if isinstance(k, AS_INDEX) else _array(k) for k in keys)
    return raw if any(k is ... for k in raw) else (*raw, ...)  # with "...", an element is a view


def _wrapped(function):
    return lambda *operands: StrictArray(function(*map(_operand, operands)))


def _in_place(function):
    def method(self, other):
        function(_array(self), _operand(other))
        return self

    return method


def _reduction(name):
    def method(self, axis=None, keepdims=False):
        return StrictArray(getattr(self._data, name)(axis=axis, keepdims=keepdims))

    return method


for _name in BINARY + COMPARISONS + UNARY:
    setattr(StrictArray, f"__{_name}__", _wrapped(getattr(operator, f"__{_name}__")))
for _name in BINARY:
    _function = getattr(operator, f"__{_name}__")
    setattr(StrictArray, f"__r{_name}__", _wrapped(lambda x, other, f=_function: f(other, x)))
for _name in IN_PLACE:
    setattr(StrictArray, f"__{_name}__", _in_place(getattr(operator, f"__{_name}__")))
for _name in REDUCTIONS:
    setattr(StrictArray, _name, _reduction(_name))
for _name in PROPERTIES:
    setattr(StrictArray, _name, property(operator.attrgetter(f"_data.{_name}")))
for _name in FUNCTIONS:
    setattr(StrictCupy, _name, staticmethod(_wrapped(getattr(np, _name))))

strict = StrictCupy()


def as_cupy(**runtime):
    """Let ``import cupy`` find it, with these functions of the runtime; it has no twins."""
    strict.ndarray, strict.__version__ = StrictArray, "14.2.0"
    strict.cuda.runtime = SimpleNamespace(CUDARuntimeError=RuntimeError, **runtime)
    sys.modules["cupy"] = strict
