"""Twins on NumPy alone: fewer passes over memory, in place where the array is ours.

Each file is one idea, beside the reference whose results it gives; importing it registers it. Of
the time of a step that they leave, three quarters are matrix products
(``benchmarks/results/profile-step-tiny.json``).
"""
