"""Matrix products on a GPU, straight from cuBLAS: transposed operands as they lie, any precision.

CuPy's own ``@`` copies each transposed operand of a product over batches before it multiplies, and
knows no precision between float32 and an array of another type. The arrays here stay float32, the
parameters too; a precision says how the tensor cores round what they multiply, and sums are always
kept in float32:

    "float32"    not at all                            24 bits, range 10^±38
    "tf32"       entries to                            11 bits, range 10^±38
    "bfloat16"   entries to                             8 bits, range 10^±38
    "float16"    entries to                            11 bits, range 6e-8 to 65504

Gradients of a mean over thousands of tokens fall below the range of float16, so it is for inference
and experiments; training does not offer it.
"""

from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from minitransformer.backend import array_namespace

# Numbers of cuBLAS's interface: types of computing, types of numbers, operations, algorithm.
COMPUTE = {"float32": 68, "tf32": 77, "bfloat16": 75, "float16": 74}
COMPUTE_DOUBLE = 70
REAL = {np.dtype(np.float32): 0, np.dtype(np.float64): 1}
AS_IT_IS, TRANSPOSED = 0, 1
DEFAULT_ALGORITHM = -1

_precision = ContextVar("precision of matrix products", default="float32")


@contextmanager
def matmul_precision(precision):
    """Inside, products of float32 arrays are worked out in ``precision``; float64 stays exact.

    Raises:
        ValueError: there is no such precision.
    """
    if precision not in COMPUTE:
        raise ValueError(f"precision={precision!r}; choose one of {', '.join(COMPUTE)}")
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
    c = array_namespace(a).empty((*batch, m, n), a.dtype)
    # cuBLAS counts by columns, and what is C by rows is Cᵀ = Bᵀ Aᵀ by columns.
    a, *a_layout = _operand(a)
    b, *b_layout = _operand(b)
    one, zero = np.ones(1, a.dtype), np.zeros(1, a.dtype)  # read by cuBLAS before it returns
    _multiply(a.dtype, n, m, k, one, b, b_layout, a, a_layout, zero, c, (n, m * n))
    return c


def _multiply(dtype, m, n, k, alpha, a, a_layout, b, b_layout, beta, c, c_layout):
    """C = α A B + β C by columns, C (m, n): cuBLAS's own order of arguments."""
    real = REAL[dtype]
    compute = COMPUTE_DOUBLE if real == REAL[np.dtype(np.float64)] else COMPUTE[_precision.get()]
    (a_operation, a_columns, a_stride), (b_operation, b_columns, b_stride) = a_layout, b_layout
    c_columns, c_stride = c_layout
    count = c.size // (m * n)
    alpha, beta = alpha.ctypes.data, beta.ctypes.data
    a, b, c = (x.data.ptr for x in (a, b, c))
    cublas, handle = _cublas()
    start = handle, a_operation, b_operation, m, n, k, alpha
    end = compute, DEFAULT_ALGORITHM
    if count == 1:  # for which cuBLAS also has ways to share out a long K
        a, b, c = (a, real, a_columns), (b, real, b_columns), (c, real, c_columns)
        cublas.gemmEx(*start, *a, *b, beta, *c, *end)
    else:
        a, b = (a, real, a_columns, a_stride), (b, real, b_columns, b_stride)
        c = c, real, c_columns, c_stride
        cublas.gemmStridedBatchedEx(*start, *a, *b, beta, *c, count, *end)


def _operand(x):
    """x, copied if it must be, and its layout.

    The layout is the operation that makes of its columns the rows of x, the distance of two of its
    columns, and that of two matrices, in entries.
    """
    *batch, rows, columns = x.shape
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
    """CuPy's cuBLAS, and its handle on the current GPU."""
    from cupy.cuda import device
    from cupy_backends.cuda.libs import cublas

    return cublas, device.get_cublas_handle()
