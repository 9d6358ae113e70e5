"""What is known of a gradient that turned out wrong: all that a diagnosis goes by."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Evidence:
    """A wrong gradient, the right one, and a way to ask the pair again.

    Attributes:
        name: of the input whose gradient is wrong.
        analytic: what backward returned, float64; or its slopes along directions.
        numeric: the right one, of the same shape unless backward's shape is wrong.
        noise: like numeric: what central differences cannot resolve, entry by entry.
        inputs: all inputs by name.
        y, dy: the output and its upstream gradient.
        analytics: what backward returned for every input that is checked, by name, None for None.
        numerics: the right gradients of the same inputs.
        slopes: whether slopes along directions stand for entries.
        found: what a diagnosis of one gradient found that may be asked of the next, too.
        forward: from all inputs by name to y, for experiments with forward alone.
        backward: from another dy to what analytic is for it; None where backward fails, or returns
            another shape, NaN or infinity.
        moves: called without arguments, by how much y moves with each entry of the input, or along
            each direction, ``(*numeric.shape, *y.shape)``.
        again: ``again(inputs, dy=None)``, the Evidence for the same pair and the same input on
            other inputs and, if given, another dy; None where forward or backward fails there. Its
            numerics hold this one input alone. This is how a cause is put to the test.
    """

    name: str
    analytic: np.ndarray
    numeric: np.ndarray
    noise: np.ndarray
    inputs: dict[str, object]
    y: np.ndarray
    dy: np.ndarray
    analytics: dict[str, np.ndarray | None]
    numerics: dict[str, np.ndarray]
    slopes: bool
    found: dict
    forward: Callable
    backward: Callable
    moves: Callable
    again: Callable
