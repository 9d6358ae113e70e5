"""The CUDA kernels, each beside the reference it equals, and the one function that starts them.

The sources are compiled when the first of them is used, by CuPy, which keeps the result on disk.
Nothing here needs CuPy before that.
"""

import re
from functools import cache
from importlib.resources import files

import numpy as np

REALS = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}
NULL = np.uintp(0)

# The types of the kernels' arguments; Real is the one that the kernels are compiled for.
SCALARS = {"int": np.int32, "unsigned": np.uint32, "long long": np.int64, "u64": np.uint64}
ARRAYS = {"bool*": np.dtype(bool), "int*": np.dtype(np.int32), "long long*": np.dtype(np.int64)}
KERNEL = re.compile(r'extern "C" __global__ void (\w+)\((.*?)\)', re.DOTALL)
PARAMETER = re.compile(r"(?:const )?([\w ]+\*?)(?: __restrict__)? \w+")


@cache
def source():
    """All kernels as one program; what they share comes first."""
    names = {file.name for file in files(__package__).iterdir() if file.name.endswith(".cu")}
    names = ["common.cu", *sorted(names - {"common.cu"})]
    return "\n".join(f'#line 1 "{f}"\n{files(__package__).joinpath(f).read_text()}' for f in names)


@cache
def parameter_types(program):
    """The types of the arguments of every kernel of a program, by its name."""
    return {
        name: tuple(PARAMETER.fullmatch(p.strip())[1] for p in parameters.split(","))
        for name, parameters in KERNEL.findall(program)
    }


def launch(name, grid, block, *args):
    """Start a kernel on the arrays' device; nothing waits for it.

    Args:
        name: of the kernel.
        grid, block: how many blocks, and threads in each, along x and y.
        args: its arguments in order, the first an array of float32 or float64, which is then Real;
            contiguous arrays, numbers, or None for an array that is not there.

    Raises:
        TypeError: an array of another type than the kernel reads, or one that is not contiguous.
    """
    real = args[0].dtype
    if real not in REALS:
        raise TypeError(f"kernel {name!r} computes in float32 or float64, not in {real}")
    if 0 in grid:
        return  # nothing to do, and CUDA refuses it
    types = parameter_types(source())[name]
    args = [_argument(x, kind, real, name) for x, kind in zip(args, types, strict=True)]
    run(name, real, grid, block, args)


def run(name, real, grid, block, args):
    """Hand a kernel to CuPy. (The tests put another machine in the place of this function.)"""
    _function(name, real)(grid, block, tuple(args))


@cache
def _function(name, real):
    return _module(real).get_function(name)


@cache
def _module(real):
    import cupy

    return cupy.RawModule(code=source(), options=("-std=c++17", f"-DReal={REALS[real]}"))


def _argument(value, kind, real, name):
    if not kind.endswith("*"):
        return SCALARS.get(kind, real.type)(value)
    if value is None:
        return NULL
    expected = ARRAYS.get(kind, real)
    if value.dtype != expected:
        raise TypeError(f"kernel {name!r} reads {expected} here, and was given {value.dtype}")
    if not value.flags.c_contiguous:  # a kernel sees its address alone
        raise TypeError(f"kernel {name!r} was given an array with gaps; make it contiguous")
    return value
