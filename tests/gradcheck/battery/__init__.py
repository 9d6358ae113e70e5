"""Pairs that the checker was not written for: right ones, and wrong ones with learners' slips.

A file a family; in each, a right pair is followed by what is easily made of it. ``table`` says what
a row is, ``says`` what may be said of each kind of slip, and ``verdicts`` judges what was said.
"""

from battery import (
    activations,
    attention,
    convolutions,
    edges,
    elementary,
    gates,
    linear,
    losses,
    modules,
    norms,
    pooling,
    recurrent,
    shapes,
    softmaxes,
)
from battery.table import Wrong

FAMILIES = (
    elementary, activations, softmaxes, linear, norms, recurrent, convolutions, pooling,
    attention, gates, losses, shapes, modules, edges,
)
PAIRS = [pair for family in FAMILIES for pair in family.PAIRS]
WRONG = [pair for pair in PAIRS if isinstance(pair, Wrong)]
RIGHT = [pair for pair in PAIRS if not isinstance(pair, Wrong)]
