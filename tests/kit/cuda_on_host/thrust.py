"""Sorting, along the last axis."""

import ctypes
import math

import numpy as np


def argsort(dtype, order, data, keys, shape):
    """Write to ``order`` the order of ``data``, in which equal entries stay as they stood."""
    _array(order, np.intp, shape)[:] = np.argsort(_array(data, dtype, shape), kind="stable")


def sort(dtype, data, keys, shape):
    _array(data, dtype, shape).sort()


def _array(address, dtype, shape):
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return np.ndarray(shape, dtype, (ctypes.c_char * size).from_address(address))
