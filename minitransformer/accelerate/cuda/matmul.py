"""Matrix products on a GPU, straight from cuBLAS: transposed operands as they lie, any precision.

CuPy's own ``@`` copies each transposed operand of a product over batches before it multiplies, and
of all that tensor cores can do knows TF32 alone. The arrays here stay float32, the parameters too;
a precision says how the tensor cores round what they multiply, and sums are always kept in float32:

    "float32"    not at all                            24 bits, range 10^±38
    "tf32"       entries to                            11 bits, range 10^±38
    "bfloat16"   entries to                             8 bits, range 10^±38
    "float16"    entries to                            11 bits, range 6e-8 to 65504

Gradients of a mean over thousands of tokens fall below the range of float16: a training in it lags
behind, where one in TF32 or bfloat16 keeps up (imitated on a CPU: ``benchmarks/results``). So
training does not offer it; it is for inference and experiments.
"""

from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

import numpy as np

from minitransformer.core.backend import array_namespace
from minitransformer.core.errors import require_one_of

# Numbers of cuBLAS's interface: types of computing, types of numbers, operations, algorithm.
COMPUTE = {"float32": 68, "tf32": 77, "bfloat16": 75, "float16": 74}
COMPUTE_DOUBLE = 70
REAL = {np.dtype(np.float32): 0, np.dtype(np.float64): 1}
AS_IT_IS, TRANSPOSED = 0, 1
DEFAULT_ALGORITHM = -1

# α = 1 and β = 0 of each type, and where they are, for cuBLAS reads them from the host. Made once:
# what a call costs the host bounds the training of a small model.
ONE_AND_ZERO = {dtype: np.array([1, 0], dtype) for dtype in REAL}
ADDRESSES = {
    dtype: (x.ctypes.data, x.ctypes.data + dtype.itemsize) for dtype, x in ONE_AND_ZERO.items()
}

_precision = ContextVar("precision of matrix products", default="float32")


@contextmanager
def matmul_precision(precision):
    """Inside, products of float32 arrays are worked out in ``precision``; float64 stays exact.

    Raises:
        ValueError: there is no such precision.
    """
    require_one_of(COMPUTE, "precision", precision)
    token = _precision.set(precision)
    try:
        yield
    finally:
        _precision.reset(token)


def matmul(a, b):
    """a @ b for a (..., M, K) and b (..., K, N) with the same leading axes, or none.

    Either may be a view with its last two axes exchanged; any other view is copied first.

    Raises:
        ValueError: the shapes do not match.
        TypeError: the types differ or are neither float32 nor float64.
    """
    *batch, m, k = a.shape
    n = b.shape[-1]
    if b.shape != (*batch, k, n):
        raise ValueError(f"a of shape {a.shape} and b of shape {b.shape} do not match")
    if a.dtype != b.dtype or a.dtype not in REAL:
        raise TypeError(f"expected two arrays of float32 or float64, got {a.dtype} and {b.dtype}")
    xp = array_namespace(a)
    if not k:  # of which cuBLAS makes nothing
        return xp.zeros((*batch, m, n), a.dtype)
    c = xp.empty((*batch, m, n), a.dtype)
    if c.size:
        # cuBLAS counts by columns, and what is C by rows is Cᵀ = Bᵀ Aᵀ by columns.
        _multiply(n, m, k, _operand(b), _operand(a), c, c.size // (m * n))
    return c


def _multiply(m, n, k, a, b, c, count):
    """C = A B by columns, C (m, n), ``count`` times; A and B are what _operand returned."""
    a, a_operation, a_columns, a_stride = a
    b, b_operation, b_columns, b_stride = b
    real = REAL[c.dtype]
    compute = COMPUTE[_precision.get()] if c.dtype == np.float32 else COMPUTE_DOUBLE
    one, zero = ADDRESSES[c.dtype]
    cublas, handle = _cublas()
    start = handle, a_operation, b_operation, m, n, k, one
    at_a, at_b, at_c = (
        (a.data.ptr, real, a_columns),
        (b.data.ptr, real, b_columns),
        (c.data.ptr, real, m),
    )
    end = compute, DEFAULT_ALGORITHM
    if count == 1:  # for which cuBLAS also has ways to share out a long K
        cublas.gemmEx(*start, *at_a, *at_b, zero, *at_c, *end)
    else:
        at_a, at_b, at_c = (*at_a, a_stride), (*at_b, b_stride), (*at_c, m * n)
        cublas.gemmStridedBatchedEx(*start, *at_a, *at_b, zero, *at_c, count, *end)


def _operand(x):
    """x, copied if it must be, and its layout.

    The layout is the operation that makes of its columns the rows of x, the distance of two of its
    columns, and that of two matrices, in entries.
    """
    *batch, rows, columns = x.shape
    if x.flags.c_contiguous:  # as most are, and asking costs less than what follows
        return x, AS_IT_IS, columns, rows * columns
    *outer, row, column = (stride // x.dtype.itemsize for stride in x.strides)
    evenly = all(
        outer[i] == outer[i + 1] * batch[i + 1] for i in range(len(batch) - 1)
    )  # so that all leading axes are one
    stride = outer[-1] if outer else 0
    if evenly and column == 1 and row >= columns:
        return x, AS_IT_IS, row, stride
    if evenly and row == 1 and column >= rows:
        return x, TRANSPOSED, column, stride
    x = array_namespace(x).ascontiguousarray(x)
    return x, AS_IT_IS, columns, rows * columns


def _cublas():
    """CuPy's cuBLAS, and its handle for this thread and the current GPU and stream."""
    cublas, device = _modules()
    return cublas, device.get_cublas_handle()


@cache
def _modules():
    from cupy.cuda import device
    from cupy_backends.cuda.libs import cublas

    return cublas, device
