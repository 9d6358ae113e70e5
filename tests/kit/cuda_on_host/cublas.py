"""The functions of cuBLAS that the package comes to, most of them through CuPy."""

import ctypes

from cuda_shim.fake_cublas import HANDLE, FakeCublas

from minitransformer.accelerate.cuda.matmul import (
    AS_IT_IS,
    COMPUTE,
    COMPUTE_DOUBLE,
    DEFAULT_ALGORITHM,
    TRANSPOSED,
)

COMPUTES = {0: COMPUTE["float32"], 1: COMPUTE_DOUBLE}  # by the number of the type

_cublas = FakeCublas()
gemmEx = _cublas.gemmEx


def create():
    return HANDLE


def getPointerMode(handle):
    return 0  # α and β are the host's


def _nothing(*which):
    pass


setStream = setPointerMode = destroy = _nothing


def gemmStridedBatchedEx(*args):
    """CuPy says the type of the numbers where cuBLAS has, since version 11, that of computing."""
    *args, compute, algorithm = args
    _cublas.gemmStridedBatchedEx(*args, COMPUTES.get(compute, compute), algorithm)


def _of_type(kind):
    """The functions whose names begin with the letter of a type."""

    def gemm(handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):
        a, b, c = (a, kind, lda), (b, kind, ldb), (c, kind, ldc)
        end = COMPUTES[kind], DEFAULT_ALGORITHM
        gemmEx(handle, op_a, op_b, m, n, k, alpha, *a, *b, beta, *c, *end)

    def gemm_batched(handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, count):
        start = handle, op_a, op_b, m, n, k, alpha
        addresses = ((ctypes.c_size_t * count).from_address(x) for x in (a, b, c))
        for a, b, c in zip(*addresses, strict=True):
            gemm(*start, a, lda, b, ldb, beta, c, ldc)

    def gemv(handle, op, m, n, alpha, a, lda, x, step_x, beta, y, step_y):
        """Of rows, yᵀ = xᵀ op(A)ᵀ: a vector with steps is a row of a matrix by columns."""
        rows, columns = (n, m) if op else (m, n)
        other = AS_IT_IS if op else TRANSPOSED
        start = handle, AS_IT_IS, other, 1, rows, columns, alpha
        gemm(*start, x, step_x, a, lda, beta, y, step_y)

    def dot(handle, n, x, step_x, y, step_y, result):
        one, zero = (ctypes.addressof(number) for number in numbers)
        gemm(handle, AS_IT_IS, TRANSPOSED, 1, 1, n, one, x, step_x, y, step_y, zero, result, 1)

    real = ctypes.c_double if kind else ctypes.c_float
    numbers = real(1), real(0)
    return gemm, gemm_batched, gemv, dot


sgemm, sgemmBatched, sgemv, sdot = _of_type(0)
dgemm, dgemmBatched, dgemv, ddot = _of_type(1)
