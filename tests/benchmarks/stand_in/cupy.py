"""The strict stand-in as the module ``cupy`` of child processes, with what is asked of a driver.

On ``PYTHONPATH`` with ``tests/kit/`` it makes ``select_device("cuda")`` find a GPU. It has no
twins.
"""

import sys
from types import SimpleNamespace

import numpy as np
from strict_cupy import StrictArray, strict

Device = strict.cuda.Device


class Stream:
    """Streams that have nothing to wait for."""

    def __init__(self, non_blocking=False):
        pass

    def record(self):
        pass

    def wait_event(self, event):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


class CUDARuntimeError(RuntimeError):
    pass


def matmul(a, b, out):
    np.matmul(a._data, b._data, out=out._data)


Device.use = lambda device: device.__enter__()
strict.cuda.Stream = Stream
strict.cuda.get_current_stream = Stream
strict.cuda.runtime = SimpleNamespace(
    CUDARuntimeError=CUDARuntimeError,
    getDeviceCount=lambda: 1,
    getDeviceProperties=lambda index: {
        "name": b"stand-in",
        "totalGlobalMem": 8 * 10**9,
        "major": 9,
        "minor": 0,
    },
    driverGetVersion=lambda: 13010,
    runtimeGetVersion=lambda: 12090,
)
strict.__version__ = "14.0.0"
strict.ndarray = StrictArray
strict.asnumpy = StrictArray.get
strict.matmul = matmul
strict.get_default_memory_pool = lambda: SimpleNamespace(total_bytes=lambda: 10**9)
strict.float32 = np.float32
sys.modules["cupy"] = strict
