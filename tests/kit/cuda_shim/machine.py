"""The machine that runs kernels on a CPU: builds their source with ``cuda_shim.h``, starts them.

A kernel becomes a C function ``run_<name>(grid, block, backwards, arguments)``, called through
ctypes on the memory of NumPy arrays. For the sanitizers the same code becomes a program,
which does launches that were written to a file and writes the arrays back (``replay.cpp``).
"""

import ctypes
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np

from minitransformer.accelerate.cuda import kernels

HERE = Path(__file__).parent
# Without contraction (a * b + c rounded once) every build of a kernel gives the same bits.
FLAGS = ["-std=c++17", "-O1", "-g", "-fno-strict-aliasing", "-ffp-contract=off", "-Wall"]


def compiler():
    """g++, or None where there is none or the shim does not fit the system."""
    return shutil.which("g++") if sys.platform == "linux" else None


class KernelError(RuntimeError):
    """A kernel broke a rule of CUDA."""


TABLE = """
struct Named {{
    const char *name;
    const char *(*run)(const unsigned *, const unsigned *, int, void **);
}};
[[maybe_unused]] static const Named KERNELS[] = {{{entries}}};
"""


def glue(source):
    """C++ from the source of kernels: the shim, the source, and a way to call each by its name."""
    names = kernels.parameter_types(source)
    calls = "".join(f"RUN_TOGETHER({name})\n" for name in names)
    entries = ", ".join(f'{{"{name}", run_{name}}}' for name in names)
    table = TABLE.format(entries=entries)
    return f'#include "cuda_shim.h"\n{source}\n#line 1 "glue"\n{calls}{table}'


def call(function, grid, block, arguments, backwards=False):
    """Launch a kernel through what ``RUN`` of cuda_shim.h made of it; what went wrong, or None.

    The sizes are along x and y, and z if they have one; ``arguments`` points to the addresses.
    """
    function.restype = ctypes.c_char_p
    sizes = [(ctypes.c_uint * 3)(*size, *[1] * (3 - len(size))) for size in (grid, block)]
    problem = function(*sizes, backwards, arguments)
    return problem and problem.decode()


def build(folder, real, source=None, flags=("-shared", "-fPIC"), main=""):
    """Compile the kernels for a type; returns the file that came of it.

    Args:
        folder: where to put it.
        real: ``"float"`` or ``"double"``.
        source: of the kernels, by default the package's.
        flags: what more to tell the compiler.
        main: a C++ file to append, for a program.
    """
    program = folder / f"{real}.cpp"
    main = (HERE / main).read_text() if main else ""
    program.write_text(glue(source or kernels.source()) + main)
    command = [compiler(), *FLAGS, f"-DReal={real}", f"-I{HERE}", *flags]
    built = program.with_suffix(".bin")
    subprocess.run([*command, str(program), "-o", str(built)], check=True)
    return built


class Machine:
    """Runs kernels on arrays of NumPy, in the place of ``kernels.run``.

    Args:
        libraries: the built file for each type, ``{"float": ..., "double": ...}``.
        array: function from an argument to the ndarray that is its memory.

    Attributes:
        launched: the names of the kernels started so far.
        backwards: whether to run the blocks of a grid from the last to the first.
        log: a file to write the launches to, or None.
        results: the bytes of all arrays after each launch that was written to the log.
    """

    def __init__(self, libraries, array=lambda x: x):
        self._libraries = {real: ctypes.CDLL(str(path)) for real, path in libraries.items()}
        self._array = array
        self.launched = []
        self.backwards = False
        self.log = None
        self.results = []

    def run(self, name, real, grid, block, args):
        """As ``kernels.run``.

        Raises:
            KernelError: an array is not contiguous, or the kernel hangs or asks for the impossible.
        """
        self.launched.append(name)
        values = [x if isinstance(x, np.generic) else self._memory(name, x) for x in args]
        if self.log:
            write_launch(self.log, name, grid, block, values)
        function = getattr(self._libraries[kernels.REALS[real]], f"run_{name}")
        held = [
            x.copy().reshape(1) if isinstance(x, np.generic) else np.array([x.ctypes.data])
            for x in values
        ]
        pointers = (ctypes.c_void_p * len(held))(*(x.ctypes.data for x in held))
        if problem := call(function, grid, block, pointers, self.backwards):
            raise KernelError(f"{name}: {problem}")
        if self.log:
            arrays = {x.ctypes.data: x for x in values if not isinstance(x, np.generic)}
            self.results += [x.tobytes() for x in arrays.values()]

    def _memory(self, name, x):
        array = self._array(x)
        if not array.flags.c_contiguous or not array.flags.writeable:
            raise KernelError(f"{name}: an argument is not a contiguous array of its own")
        return array


def write_launch(file, name, grid, block, values):
    """Append a launch to a file of launches; ``replay.cpp`` reads it."""
    file.write(struct.pack("64s7I", name.encode(), *grid, 1, *block, 1, len(values)))
    addresses = [0 if isinstance(x, np.generic) else x.ctypes.data for x in values]
    for i, (x, address) in enumerate(zip(values, addresses, strict=True)):
        memory_of = addresses.index(address) if address else i  # an array may be given twice
        content = x.tobytes() if memory_of == i else b""
        file.write(struct.pack("QQQ", address != 0, memory_of, len(content)) + content)


def read_arrays(data):
    """The bytes of the arrays that ``replay.cpp`` wrote, in their order."""
    at = 0
    while at < len(data):
        (size,) = struct.unpack_from("Q", data, at)
        yield data[at + 8 : at + 8 + size]
        at += 8 + size


def sanitizer(folder, kind):
    """What to put before the name of a program built with this sanitizer; None if none can run.

    Some systems place memory where the thread sanitizer wants its own. setarch asks them not to;
    others again forbid to ask.
    """
    (folder / "nothing.cpp").write_text("int main() {}")
    program = folder / "nothing"
    command = [compiler(), f"-fsanitize={kind}", folder / "nothing.cpp", "-o", program]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        return None
    for before in [], ["setarch", "-R"]:
        if not before or shutil.which(before[0]):
            done = subprocess.run([*before, program], capture_output=True, check=False)
            if not done.returncode:
                return before
    return None


def replay(before, program, launches):
    """Do the launches of a file under a sanitizer; returns the finished process."""
    environment = os.environ | {"TSAN_OPTIONS": "halt_on_error=1:atexit_sleep_ms=0"}
    command = [*before, program, launches]
    return subprocess.run(command, capture_output=True, env=environment, check=False)
