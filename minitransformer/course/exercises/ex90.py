"""Exercise 90, arrays on two machines: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.far_machine import FarArray, FarMachine
from minitransformer.course.exercises.parts import check_gradients, expect, part
from minitransformer.gradcheck import CheckError

B, H, T, K, D = 3, 2, 5, 4, 7


@part(10)
def check_break_even(break_even):
    hint = "three matrices of 4n² bytes cross, once; a product takes 2n³ operations"
    for given in ((2e11, 2e13, 2e10, 1), (1e11, 4e11, 5e9, 8)):
        cpu, gpu, link, products = given
        expected = 6 / (products * link * (1 / cpu - 1 / gpu))
        break_even.expect(given, expected, hint)


@part(25)
def check_merges_without_copy(merges_without_copy):
    x = np.zeros((4, 6, 8), np.float32)
    arrays = {
        "zeros((4, 6, 8))": x,
        "its swapaxes(1, 2)": x.swapaxes(1, 2),
        "its swapaxes(0, 1)": x.swapaxes(0, 1),
        "its [:, ::2]": x[:, ::2],
        "its [:, :, :3]": x[:, :, :3],
        "its [:, :3]": x[:, :3],
        "its [:, ::-1]": x[:, ::-1],
        "its [::-1, ::-1, ::-1]": x[::-1, ::-1, ::-1],
        "its [:, :1]": x[:, :1],
        "its [:1, ::2].swapaxes(1, 2)": x[:1, ::2].swapaxes(1, 2),
        "broadcast_to(0, (4, 6, 8))": np.broadcast_to(np.float32(0), (4, 6, 8)),
        "its [:0, :, :3]": x[:0, :, :3],
    }
    for name, array in arrays.items():
        for axis in (0, 1):
            shape, strides = array.shape, array.strides
            answer = merges_without_copy(shape, strides, axis)
            expected = _merges(array, axis)
            if not isinstance(answer, bool | np.bool_) or answer != expected:
                raise CheckError(
                    f"merges_without_copy({shape}, {strides}, {axis}) is {_short(answer)} and "
                    f"should be {expected}; the array is {name}, of float32"
                )


@part(45)
def check_clip_without_waiting(clip_without_waiting):
    rng = np.random.default_rng(1)
    long = rng.standard_normal((B, D)).astype(np.float32)
    for what, gradient, limit in (
        ("a gradient longer than the limit", long, 1.5),
        ("one shorter than the limit", long, 100.0),
        ("a limit that is a float64 of NumPy", long, np.float64(1.5)),
        ("a gradient of zeros", np.zeros((B, D), np.float32), 1.5),
        ("one of float64 with four axes", rng.standard_normal((B, H, T, K)), 2.0),
    ):
        norm = np.sqrt((gradient.astype(np.float64) ** 2).sum())
        expected = gradient * float(min(1, limit / norm)) if norm else gradient
        far = FarMachine()
        for x in (gradient, far.asarray(gradient)):
            uploads = far.uploads
            with np.errstate(divide="raise", invalid="raise"):
                y = clip_without_waiting(x, limit)
            where = "far array" if isinstance(x, FarArray) else "NumPy array"
            if type(y) is not type(x):
                raise CheckError(f"for {what}, a {where}, it returns {_short(y)}")
            if far.waits or far.uploads > uploads:
                raise CheckError(
                    f"for {what} on the far machine it waits {far.waits} times and uploads "
                    f"{far.uploads - uploads} arrays; neither is needed. if, float(), min() and "
                    "math.sqrt want a number here, and wait for it"
                )
            if y.dtype != x.dtype:
                raise CheckError(
                    f"for {what}, a {where}, the dtype of the result is {y.dtype} and should be "
                    f"{x.dtype}; is a float64 scalar among the factors?"
                )
            y = y.get() if isinstance(y, FarArray) else y
            expect(f"the result for {what}, a {where},", y, expected, tolerance=1e-6)


@part(45)
def check_project_heads(forward, backward):
    rng = np.random.default_rng(1)
    heads, w_output = rng.standard_normal((B, H, T, K)), rng.standard_normal((H, K, D))
    expected = sum(heads[:, h] @ w_output[h] for h in range(H))  # (B, T, D)
    far = FarMachine()
    y, cache = forward.y_and_cache(far.asarray(heads), far.asarray(w_output))
    expect("y", _fetched("y", y), expected, "head h belongs to w_output[h]")
    _count(forward.name, far, 1)
    backward.several(2, "dheads, dw_output", far.asarray(np.ones((B, T, D))), cache)
    _count(backward.name, far, 2)
    return check_gradients(forward, backward, (heads, w_output))


def _merges(array, axis):
    shape = array.shape
    merged = array.reshape(*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
    return array.size == 0 or np.shares_memory(array, merged)


def _count(name, far, expected):
    gemms, far.gemms = far.gemms, 0
    if gemms != expected:
        raise CheckError(
            f"{name} makes {gemms} GEMMs and should make {expected}; a product with leading axes "
            "is one GEMM for each of their entries, and einsum counts as none"
        )


def _fetched(name, x):
    if not isinstance(x, FarArray):
        raise CheckError(f"{name} is {_short(x)}; given far arrays, it should be one")
    return x.get()


def _short(value):
    return repr(value) if isinstance(value, bool | int | float) else f"a {type(value).__name__}"
