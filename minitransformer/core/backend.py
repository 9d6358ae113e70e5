"""NumPy on a CPU, CuPy on a CUDA GPU: the module that knows one from the other.

(But for ``staging.py``, which copies ahead, and the twins, ``accelerate/cuda/``.) All other code
asks an array for its namespace, ``xp = array_namespace(x)``, and calls what both libraries spell
the same way. The device is chosen once, at run time, by the user; nothing moves between host and
device unless a function of these modules is called to move it.
"""

import sys
import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from minitransformer.core.counter_generator import CounterGenerator
from minitransformer.core.errors import ExplainedError, InputError
from minitransformer.core.libraries import library_if_there

INSTALL_HINT = (
    "install CuPy for your driver: in the project's folder, pip install --editable '.[gpu12]' "
    "(CUDA 12) or '.[gpu13]' (CUDA 13)"
)
OF_NUMPY = np.ndarray, np.generic  # scalars of NumPy 2.0 lack __array_namespace__


class DeviceError(ExplainedError, RuntimeError):
    """The device asked for does not exist or does not answer."""


@dataclass(frozen=True)
class Device:
    """A place where arrays live and are computed with.

    Attributes:
        name: ``"cpu"`` or ``"cuda:N"``.
        xp: the array namespace of the place, ``numpy`` or ``cupy``.
        index: N, the number of the GPU.
    """

    name: str
    xp: ModuleType
    index: int = 0

    def asarray(self, x, dtype=None):
        """``x`` on this device: copied from another place, itself if it is here in that dtype."""
        if is_array(x) and array_namespace(x) is not self.xp:
            x = to_host(x)
        with self.as_current():
            return self.xp.asarray(x, dtype=dtype)

    def generator(self, seed):
        """A random generator on this device; the same seed gives the same numbers again.

        On a GPU its state stays on the host, so that a step makes a new one without waiting.
        """
        return np.random.default_rng(seed) if self.xp is np else CounterGenerator(seed, self.xp)

    def synchronize(self):
        """Wait until all work queued on this device is done."""
        if self.xp is not np:
            self.xp.cuda.Device(self.index).synchronize()

    def queue(self):
        """Where CUDA finds the queue that work of this thread for this GPU goes to, an address."""
        return self.xp.cuda.get_current_stream().ptr

    def as_current(self):
        """Inside, this thread computes and makes new arrays here.

        CuPy does both on the GPU that is current in the thread, which is the first one until
        another is chosen, in each new thread again.
        """
        return nullcontext() if self.xp is np else self.xp.cuda.Device(self.index)

    def __deepcopy__(self, memo):
        return self  # a place is not copied, nor can a module be

    def __reduce__(self):
        return select_device, (self.name,)  # in another process: the place of that name there

    def __str__(self):
        return self.name


CPU = Device("cpu", np)


def select_device(name="auto"):
    """The device called ``name``; a CUDA device also becomes the current one of this thread.

    Args:
        name: ``"cpu"``; ``"cuda"`` (the first GPU); ``"cuda:N"``; or ``"auto"``, the first GPU
            when a usable one exists and the CPU otherwise. A Device is itself.

    Raises:
        ValueError: ``name`` is none of these.
        DeviceError: CUDA was asked for and is not usable; says what is missing.
    """
    if isinstance(name, Device):
        return name
    if name == "cpu":
        return CPU
    if name == "auto":
        return CPU if _cuda_problem(0) else _cuda_device(0)
    kind, _, index = str(name).partition(":")
    if kind != "cuda" or not (index.isdecimal() or name == "cuda"):
        raise InputError(f"unknown device {name!r}; choose 'auto', 'cpu', 'cuda' or 'cuda:N'")
    index = int(index or 0)
    problem = _cuda_problem(index)
    if problem:
        raise DeviceError(f"device {name!r} is not usable: {problem}")
    return _cuda_device(index)


def visible_gpus():
    """The PCI addresses of the GPUs that this process sees, in CUDA's order; none without CuPy.

    They are not asked for more than that: a process that uses one leaves the others alone.
    """
    try:
        import cupy
    except ImportError:
        return []
    runtime = cupy.cuda.runtime
    try:
        return [runtime.deviceGetPCIBusId(index) for index in range(runtime.getDeviceCount())]
    except runtime.CUDARuntimeError:  # no driver, or no GPU
        return []


def nccl():
    """CuPy's module for NCCL, by which GPUs of several processes meet, or None without NCCL."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CuPy's, that NCCL could not be loaded
        module = library_if_there("cupy.cuda.nccl")
    return module if module and module.available else None


def _cuda_device(index):
    import cupy

    cupy.cuda.Device(index).use()
    return Device(f"cuda:{index}", cupy, index)


def _cuda_problem(index):
    """Why GPU ``index`` cannot be used, or None. CuPy imports fine without any GPU, so ask one."""
    try:
        import cupy
    except ImportError as error:
        return f"CuPy does not import ({error}); {INSTALL_HINT}"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return (
            f"no CUDA device answers ({error}); install NVIDIA's driver, or, if it is there, "
            f"{INSTALL_HINT}, or choose device 'cpu'"
        )
    if index >= count:
        return f"it would be GPU number {index + 1} and this machine has {count}"
    try:
        with cupy.cuda.Device(index):
            int(cupy.arange(3).sum())
    except Exception as error:  # any failure here, of driver, compiler or memory, means unusable
        return f"it fails at a sum of three numbers ({error}); {INSTALL_HINT}"
    return None


def is_array(x):
    """Whether ``x`` is an array or scalar of NumPy, CuPy or a library with an array namespace."""
    return isinstance(x, OF_NUMPY) or _is_cupy(x) or hasattr(x, "__array_namespace__")


def on_host(x):
    """Whether the array ``x`` is NumPy's."""
    return array_namespace(x) is np


def array_namespace(x):
    """The library ``x`` belongs to: ``numpy`` or ``cupy``.

    Raises:
        TypeError: ``x`` is no array (a list, a number).
    """
    if isinstance(x, OF_NUMPY):
        return np
    if _is_cupy(x):
        return sys.modules["cupy"]
    if is_array(x):
        return x.__array_namespace__()
    raise TypeError(f"expected a NumPy or CuPy array, got {type(x).__name__}")


def _is_cupy(x):
    # CuPy 14 arrays lack __array_namespace__; whoever has one has imported CuPy already.
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(x, cupy.ndarray)


def to_host(x):
    """``x`` as a NumPy array; waits for the device that computes it."""
    return x.get() if hasattr(x, "get") else np.asarray(x)


def like(x, reference):
    """``x``, an array or list, in the place where the array ``reference`` is."""
    xp = array_namespace(reference)
    return x if is_array(x) and array_namespace(x) is xp else xp.asarray(to_host(x))


def scatter_add(target, indices, values):
    """``target[indices] += values``, counting an index as often as it occurs.

    Plain fancy assignment keeps only one of several values for the same index. On a GPU the
    additions run in no fixed order, so the last bits may differ from run to run.
    """
    array_namespace(target).add.at(target, indices, values)
