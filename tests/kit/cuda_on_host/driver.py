"""Kernels are functions of a shared library, which run when they are launched."""

import ctypes
import tempfile

from cuda_shim.machine import call

from cuda_on_host.runtime import getDevice

MOST_THREADS = 1024
# PyDLL and PYFUNCTYPE keep Python's lock: two threads share what the shim keeps of a launch.
_kernel = ctypes.PYFUNCTYPE(ctypes.c_char_p)


def ctxGetCurrent():
    return 1 + getDevice()


def moduleLoadData(library):
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(library)
        file.flush()
        return ctypes.PyDLL(file.name)._handle


def moduleUnload(module):
    """It stays, as the fibers that run kernels may be in the midst of its code."""


def moduleGetFunction(module, name):
    function = ctypes.PyDLL(None, handle=module)[f"run_{name}"]
    return ctypes.cast(function, ctypes.c_void_p).value


def funcGetAttribute(attribute, function):
    return {0: MOST_THREADS}[attribute]


def launchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra):
    if shared:
        raise RuntimeError("shared memory of a size that the launch says is not imitated")
    arguments = ctypes.c_void_p(arguments)
    if problem := call(_kernel(function), (gx, gy, gz), (bx, by, bz), arguments):
        raise RuntimeError(problem)
