"""Faster twins of the readable functions: ``cpu`` for NumPy, ``cuda`` for CuPy.

Importing this package imports all files of both, which register themselves; ``with accelerated():``
(``core/twins.py``) does, and uses them.
"""

from importlib import import_module
from pkgutil import iter_modules

from minitransformer.accelerate import cpu, cuda
from minitransformer.accelerate.cuda.matmul import matmul_precision

__all__ = ["cpu", "cuda", "matmul_precision"]

for folder in (cpu, cuda):
    for module in iter_modules(folder.__path__):
        import_module(f"{folder.__name__}.{module.name}")
