"""Faster twins of the readable functions: ``cpu`` for NumPy, ``cuda`` for CuPy.

Importing this package registers them; ``with accelerated():`` (``core/twins.py``) does, and uses
them.
"""

from minitransformer.accelerate import cpu, cuda
from minitransformer.accelerate.cuda.matmul import matmul_precision

__all__ = ["cpu", "cuda", "matmul_precision"]
