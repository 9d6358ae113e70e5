"""The gradient of an embedding, the same bits in every run.

The positions are sorted by their id; one block then adds up the rows of all positions of an id, in
that order. (The reference's scatter-add leaves the order to chance.)
"""

import numpy as np

from minitransformer.accelerate.cuda.kernels import launch
from minitransformer.accelerate.cuda.launches import matrix, summing
from minitransformer.core.backend import array_namespace
from minitransformer.core.twins import Twin
from minitransformer.layers import embedding as reference


def embedding_backward(dx, cache):
    """As the reference, whose cache it takes."""
    ids, weight, scale = cache
    xp = array_namespace(weight)
    dx, ids = matrix(dx), xp.ascontiguousarray(ids.reshape(-1), dtype=np.int32)
    rows, width = dx.shape
    dweight = xp.zeros_like(weight)
    order = xp.argsort(ids)  # stable
    (columns, _), block = summing(rows, width)
    arguments = dx, ids, order, dweight, rows, width, scale
    launch("embedding_gradient", (rows, columns), block, *arguments)
    return dweight


reference.embedding_backward.twins.setdefault("cupy", Twin(embedding_backward))
