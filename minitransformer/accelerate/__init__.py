"""Faster twins of the readable functions: ``cpu`` for NumPy, ``cuda`` for CuPy.

Importing this package registers them; ``with accelerated():`` (``twins.py``) uses them.
"""
