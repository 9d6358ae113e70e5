"""Two functions of cuBLAS on the memory of NumPy arrays, as its manual defines them: by columns."""

import ctypes

import numpy as np

HANDLE = 77
TYPES = {0: np.float32, 1: np.float64}
COMPUTES_IN = {0: {68, 74, 75, 77}, 1: {70}}


class FakeCublas:
    """Takes the arguments that CuPy's module ``cublas`` takes.

    Attributes:
        computed: the type of computing of each call so far.
    """

    def __init__(self):
        self.computed = []

    def gemmEx(
        self, handle, op_a, op_b, m, n, k, alpha,
        a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc, compute, algorithm,
    ):  # fmt: skip
        start = handle, op_a, op_b, m, n, k, alpha
        a, b, c = (a, type_a, lda, 0), (b, type_b, ldb, 0), (c, type_c, ldc, 0)
        self.gemmStridedBatchedEx(*start, *a, *b, beta, *c, 1, compute, algorithm)

    def gemmStridedBatchedEx(
        self, handle, op_a, op_b, m, n, k, alpha,
        a, type_a, lda, stride_a, b, type_b, ldb, stride_b,
        beta, c, type_c, ldc, stride_c, count, compute, algorithm,
    ):  # fmt: skip
        assert handle == HANDLE
        assert type_a == type_b == type_c
        assert compute in COMPUTES_IN[type_c]
        self.computed.append(compute)
        dtype = np.dtype(TYPES[type_c])
        alpha, beta = (by_columns(x, 1, 1, 1, dtype)[0, 0] for x in (alpha, beta))
        assert beta == 0  # C is not read, as it may hold NaN
        for i in range(count):
            place_a, place_b, place_c = (
                start + i * stride * dtype.itemsize
                for start, stride in ((a, stride_a), (b, stride_b), (c, stride_c))
            )
            x = by_columns(place_a, *((k, m) if op_a else (m, k)), lda, dtype)
            y = by_columns(place_b, *((n, k) if op_b else (k, n)), ldb, dtype)
            x, y = x.T if op_a else x, y.T if op_b else y
            by_columns(place_c, m, n, ldc, dtype)[:] = alpha * (x @ y)


def by_columns(address, rows, columns, distance, dtype):
    """The matrix (rows, columns) there, whose columns begin ``distance`` entries apart."""
    assert distance >= max(1, rows), "the leading dimension is smaller than a column"
    size = ((columns - 1) * distance + rows) * dtype.itemsize
    memory = (ctypes.c_char * size).from_address(address)
    strides = dtype.itemsize, distance * dtype.itemsize
    return np.ndarray((rows, columns), dtype, memory, strides=strides)
