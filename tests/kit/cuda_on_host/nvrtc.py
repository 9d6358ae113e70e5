"""g++ in the place of NVIDIA's compiler, on the sources that CuPy hands over."""

import itertools
import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from cuda_shim import machine

HEADERS = Path(__file__).parent / "include"
INCLUDE = f"-I{HEADERS}", f"-I{machine.HERE}", "-include", "cuda_on_host.h"
KERNEL = re.compile(r'extern "C" __global__ void (\w+)\(')
BARRIER = re.compile("__sync|__shfl")

_numbers = itertools.count(1)
_sources, _compiled, _logs = {}, {}, {}  # by the number of a program


class NVRTCError(RuntimeError):
    """The source does not compile."""


def getVersion():
    return 12, 9


def createProgram(source, name, headers, include_names):
    number = next(_numbers)
    _sources[number] = source
    return number


def compileProgram(number, options):
    try:
        _compiled[number] = _build(_sources[number], options)
    except subprocess.CalledProcessError as error:
        _logs[number] = error.stderr
        raise NVRTCError(error.stderr) from error


@cache  # CuPy compiles once for each GPU
def _build(source, options):
    """The bytes of a shared library with all kernels of a source."""
    with tempfile.TemporaryDirectory() as folder:
        program, library = Path(folder, "kernels.cpp"), Path(folder, "kernels.so")
        runner = "RUN_TOGETHER" if BARRIER.search(source) else "RUN_IN_TURN"
        runners = (f"\n{runner}({name})" for name in KERNEL.findall(source))
        program.write_text(source + "".join(runners))
        flags = [*machine.FLAGS, "-w", "-shared", "-fPIC", *INCLUDE]
        flags += [option for option in options if option.startswith(("-D", "-I"))]
        command = [machine.compiler(), *flags, program, "-o", library]
        subprocess.run(command, check=True, capture_output=True, text=True)
        return library.read_bytes()


def getCUBIN(number):
    return _compiled[number]


def getPTX(number):
    return b""  # in which CuPy looks for the version of the compiler


def getProgramLog(number):
    return _logs.get(number, "")


def destroyProgram(number):
    for kept in (_sources, _compiled, _logs):
        kept.pop(number, None)
