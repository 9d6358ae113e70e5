"""Twins on NumPy alone: fewer passes over memory, in place where the array is ours.

Each file is one idea, beside the reference whose results it gives; importing it registers it. Of
the time of a step that they leave, three quarters are matrix products
(``benchmarks/results/profile-step-tiny.json``).
"""

from minitransformer.accelerate.cpu import (
    adam,
    attention,
    dropout,
    feed_forward,
    layer_norm,
    projected_loss,
)
from minitransformer.accelerate.cpu.memory import keep_freed_memory

__all__ = [
    "adam",
    "attention",
    "dropout",
    "feed_forward",
    "keep_freed_memory",
    "layer_norm",
    "projected_loss",
]
