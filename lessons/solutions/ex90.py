"""Solutions of lesson 90, arrays on two machines."""

from minitransformer.core.backend import array_namespace


def break_even(cpu, gpu, link, products):
    """r · 2n³ / cpu = 12n² / link + r · 2n³ / gpu: only the journey is not made r times.

    What stays on the GPU for r products may be r times as small as what comes and goes. A training
    step makes thousands of operations on parameters that never leave.
    """
    return 6 / (products * link * (1 / cpu - 1 / gpu))


def merges_without_copy(shape, strides, axis):
    """Row-major order asks that a step along the outer axis equals a whole row of the inner one.

    An axis of size 1 is never stepped along, so its stride does not matter; and where there is no
    entry at all, nothing is ever copied.
    """
    outer, inner = shape[axis : axis + 2]
    if 0 in shape or outer == 1 or inner == 1:
        return True
    return strides[axis] == inner * strides[axis + 1]


def clip_without_waiting(gradient, limit):
    """The norm is at least 0 and the limit more, so nothing is divided by 0.

    `limit` is made a Python number: a float64 of NumPy would make all of the gradient float64.
    """
    xp = array_namespace(gradient)
    norm = xp.sqrt((gradient * gradient).sum())  # (), on the machine of the gradient
    limit = float(limit)
    return gradient * (limit / xp.maximum(norm, limit))


def project_heads(heads, w_output):
    """Σ over h and k is a row times a column of H·K numbers: y = merged W, W of shape (H·K, D).

    That is why the paper concatenates its heads: Concat(head_1, …, head_h) W^O.
    """
    batch, num_heads, length, head_width = heads.shape
    d_model = w_output.shape[-1]
    rows = heads.swapaxes(1, 2).reshape(batch * length, num_heads * head_width)  # copies
    weight = w_output.reshape(num_heads * head_width, d_model)  # a view
    y = (rows @ weight).reshape(batch, length, d_model)
    return y, (rows, weight, heads.shape)


def project_heads_backward(dy, cache):
    rows, weight, (batch, num_heads, length, head_width) = cache
    dy = dy.reshape(batch * length, -1)
    dw_output = (rows.T @ dy).reshape(num_heads, head_width, -1)
    drows = dy @ weight.T  # (B·T, H·K)
    dheads = drows.reshape(batch, length, num_heads, head_width).swapaxes(1, 2)
    return dheads, dw_output
