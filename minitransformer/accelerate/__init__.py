"""Faster twins of the readable functions: ``cpu`` for NumPy, ``cuda`` for CuPy.

Importing this package registers them; ``with accelerated():`` (``twins.py``) does, and uses them.
"""

from minitransformer.accelerate import cpu, cuda
from minitransformer.accelerate.cpu.memory import keep_freed_memory

__all__ = ["cpu", "cuda", "keep_freed_memory"]
