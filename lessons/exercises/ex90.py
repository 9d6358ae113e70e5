"""Exercises of lesson 90, arrays on two machines. Check yours:  minitransformer check ex90

Your functions get arrays of NumPy and of a far machine, which are no NumPy arrays. Ask an array for
its library by array_namespace(x). Shapes: B batch, H heads, T length, K head width, D width.
"""

from minitransformer.core.backend import array_namespace


def break_even(cpu, gpu, link, products):
    """10 min. The size n of square matrices from which a journey to the GPU pays.

    Two float32 matrices (n, n) cross the link, `products` matrix products of (n, n) by (n, n) are
    computed there one after the other, and one matrix (n, n) comes back. Or all the products are
    computed here, and nothing crosses.

    Args:
        cpu, gpu: operations per second of a matrix product here and there; gpu > cpu.
        link: bytes per second between the two, either way.
        products: how many.

    Returns:
        n at which both take the same time, a float, not rounded.

    Hint: which of the three terms of the lesson's equation does `products` multiply?
    """
    raise NotImplementedError


def merges_without_copy(shape, strides, axis):
    """25 min. Whether reshape can make one axis of axes `axis` and `axis + 1`, and copy nothing.

    Args:
        shape: sizes of all axes, a tuple.
        strides: how many bytes further the next entry along each axis is, a tuple as long.
        axis: 0 ≤ axis < len(shape) - 1.

    Returns:
        True or False.

    Hint: one axis has one stride. Where does the entry after the last of a row have to be? And is
    there always such an entry?
    """
    raise NotImplementedError


def clip_without_waiting(gradient, limit):
    """45 min. The gradient, made shorter if it is longer than `limit`.

        gradient · min(1, limit / ‖gradient‖)          and 0 where the gradient is 0

    An `if` about the norm would wait for the GPU; this function may not. It may not divide by 0
    either, nor change the dtype, nor write to what it is given.

    Args:
        gradient: float32 or float64, any shape, of any library.
        limit: a positive number, of Python or of NumPy.

    Returns:
        an array of the gradient's shape, dtype and library.

    Hint: min(1, limit / norm) is limit / max(norm, limit). Is there a function for it that
    takes an array and a number?
    """
    raise NotImplementedError


def project_heads(heads, w_output):
    """45 min, with its backward. What attention does with its heads at the end, by one GEMM.

        y[b, t, :] = Σ_h heads[b, h, t, :] @ w_output[h]

    Args:
        heads: (B, H, T, K).
        w_output: (H, K, D).

    Returns:
        y (B, T, D) and the cache, whatever your backward needs.

    Hint: the sum runs over h and k. Bring these two side by side, and make them one axis.
    """
    raise NotImplementedError


def project_heads_backward(dy, cache):
    """Gradients dheads (B, H, T, K) and dw_output (H, K, D), by one GEMM each.

    Hint: undo your reshapes in the opposite order.
    """
    raise NotImplementedError
