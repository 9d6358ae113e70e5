"""Matrix products through cuBLAS: any layout of the operands, and the precision asked for."""

import numpy as np
import pytest
from strict_cupy import StrictCupy

from minitransformer.accelerate.cuda.matmul import COMPUTE, matmul, matmul_precision
from minitransformer.core.backend import to_host

# Largest error of a product over the sum of the absolute values of its terms: each factor is
# rounded to so many bits, and the sum of 64 terms to 24.
ROUNDING = {"float32": 2**-18, "tf32": 2**-10, "bfloat16": 2**-7, "float16": 2**-10}

both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float", "double"])


def integers(*shape):
    """Small whole numbers, whose products and sums are exact in whatever order they are added."""
    return np.random.default_rng(len(shape)).integers(-9, 10, shape).astype(float)


# The same matrices in different places of memory; ``there`` copies an array to the GPU.
VIEWS = {
    "by rows": lambda a, there: there(a),
    "by columns": lambda a, there: there(a.swapaxes(-1, -2).copy()).swapaxes(-1, -2),
    "rows of a wider array": lambda a, there: there(np.concatenate([a, a], -1))[..., : a.shape[-1]],
    "every other row": lambda a, there: there(np.repeat(a, 2, -2))[..., ::2, :],
    "every other column": lambda a, there: there(np.repeat(a, 2, -1))[..., ::2],
    "heads of one array": lambda a, there: there(a.swapaxes(0, -2).copy()).swapaxes(0, -2),
}


@both_types
@pytest.mark.parametrize("of_b", VIEWS)
@pytest.mark.parametrize("of_a", VIEWS)
def test_operands_may_lie_in_memory_in_any_way(gpu, of_a, of_b, dtype):
    for batch in ((), (3,), (2, 3), (1, 1)):
        for m, k, n in ((4, 5, 6), (1, 5, 1), (4, 1, 6), (1, 1, 1)):
            a, b = integers(*batch, m, k).astype(dtype), integers(*batch, k, n).astype(dtype)
            c = matmul(VIEWS[of_a](a, gpu.device.asarray), VIEWS[of_b](b, gpu.device.asarray))
            assert c.dtype == dtype
            assert np.array_equal(to_host(c), a @ b)


@pytest.mark.parametrize(("m", "k", "n"), [(0, 4, 3), (3, 4, 0), (3, 0, 5)])
def test_no_rows_or_no_columns_make_an_empty_product_and_nothing_between_makes_zeros(gpu, m, k, n):
    a, b = (gpu.device.asarray(integers(*shape)) for shape in ((2, m, k), (2, k, n)))
    assert np.array_equal(to_host(matmul(a, b)), np.zeros((2, m, n)))


def test_transposed_operands_are_not_copied(shim, monkeypatch):
    monkeypatch.setattr(StrictCupy, "ascontiguousarray", None)
    a, b = (shim.device.asarray(integers(2, 3, 4, 5)) for _ in range(2))
    assert np.array_equal(to_host(matmul(a, b.swapaxes(-1, -2))), (a @ b.swapaxes(-1, -2)).get())
    assert np.array_equal(to_host(matmul(a.swapaxes(-1, -2), b)), (a.swapaxes(-1, -2) @ b).get())


@pytest.mark.parametrize("precision", COMPUTE)
def test_a_precision_rounds_factors_and_nothing_else(gpu, precision):
    a, b = np.random.default_rng(0).standard_normal((2, 64, 64)).astype(np.float32)
    with matmul_precision(precision):
        c = to_host(matmul(gpu.device.asarray(a), gpu.device.asarray(b)))
    assert c.dtype == np.float32
    error = np.abs(c - a.astype(float) @ b) / (np.abs(a).astype(float) @ np.abs(b))
    assert error.max() < ROUNDING[precision]


def test_cublas_is_told_the_precision_inside_its_block_and_for_float32_only(shim):
    x, wide = (shim.device.asarray(np.ones((2, 2), t)) for t in (np.float32, np.float64))
    for precision in COMPUTE:
        with matmul_precision(precision):
            matmul(x, x)
            matmul(wide, wide)
    matmul(x, x)
    assert shim.cublas.computed == [68, 70, 77, 70, 75, 70, 74, 70, 68]


def test_what_cannot_be_multiplied_is_refused(shim):
    x, wide, long = (
        shim.device.asarray(a)
        for a in (np.ones((2, 2), np.float32), np.ones((2, 2)), np.ones((3, 2), np.float32))
    )
    with pytest.raises(ValueError, match=r"\(2, 2\) and b of shape \(3, 2\)"):
        matmul(x, long)
    with pytest.raises(TypeError, match="float32 and float64"):
        matmul(x, wide)
    one_of = "choose 'float32', 'tf32', 'bfloat16' or 'float16'"
    with pytest.raises(ValueError, match=one_of), matmul_precision("half"):
        pass
