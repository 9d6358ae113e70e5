"""The strict stand-in as the module ``cupy`` of child processes, with what is asked of a driver.

On ``PYTHONPATH`` with ``tests/kit/`` it makes ``select_device("cuda")`` find a GPU.
"""

from types import SimpleNamespace

import numpy as np
from strict_cupy import StrictArray, as_cupy, strict

PROPERTIES = {"name": b"stand-in", "totalGlobalMem": 8 * 10**9, "major": 9, "minor": 0}


def matmul(a, b, out):
    np.matmul(a._data, b._data, out=out._data)


as_cupy(
    getDeviceCount=lambda: 1,
    getDeviceProperties=lambda index: PROPERTIES,
    driverGetVersion=lambda: 13010,
    runtimeGetVersion=lambda: 12090,
)
strict.asnumpy = StrictArray.get
strict.matmul = matmul
strict.get_default_memory_pool = lambda: SimpleNamespace(total_bytes=lambda: 10**9)
strict.float32 = np.float32
