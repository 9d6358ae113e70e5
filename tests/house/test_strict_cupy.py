"""The stand-in for CuPy refuses what a GPU refuses: one that accepts everything proves nothing.

That it computes what NumPy does shows in all tests of devices, such as those of every layer.
"""

import operator

import numpy as np
import pytest
from elsewhere import in_a_thread
from strict_cupy import BINARY, COMPARISONS, IN_PLACE, UNARY, StrictArray, StrictCupy, strict

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)
OPERATORS = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.and_),
    *(operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge),
    *(operator.iadd, operator.isub, operator.imul, operator.itruediv),
]


@pytest.fixture
def x():
    return strict.asarray(HOST)


def is_refused(action, *args):
    try:
        action(*args)
    except TypeError:
        return True
    return False


def test_its_arrays_are_no_ndarrays_and_know_their_namespace(x):
    assert not isinstance(x, np.ndarray)
    assert x.__array_namespace__() is strict


def test_cupy_has_everything_it_offers():
    cupy = pytest.importorskip("cupy")
    operators = {f"__{name}__" for name in BINARY + COMPARISONS + IN_PLACE + UNARY}
    public = {name for name in vars(StrictArray) if not name.startswith("_")}
    assert operators | public <= set(dir(cupy.ndarray))
    functions = {name for name in vars(StrictCupy) if not name.startswith("_")} - {"record"}
    assert functions <= set(dir(cupy))


IDS = strict.asarray([0, 1])
REFUSED = {
    "to convert it": [np.asarray, np.array, lambda x: HOST.__setitem__(slice(None), x)],
    "to compute with it on the host": [np.exp, np.sum, np.zeros_like],
    "an index of the host": [
        lambda x, key=key, act=act: act(x, key)
        for key in (np.array([0, 1]), [0, 1], (slice(None), [0, 1]), (np.array(0), 1), 1.0)
        for act in (lambda x, key: x[key], lambda x, key: operator.setitem(x, key, 0))
    ],
    "it as an index of the host": [
        lambda x: HOST[IDS.max()],
        lambda x: x[slice(IDS.max())],
        lambda x: range(IDS.max()),
    ],
    "values of the host": [
        lambda x: operator.setitem(x, 0, HOST[0]),
        lambda x: x.fill(np.array(1.0)),
    ],
    "to go through it": [iter, list, hash],
    "arrays of the host": [
        *(lambda x, f=f: f(HOST) for f in (strict.exp, strict.sqrt, strict.zeros_like)),
        lambda x: strict.nonzero(HOST),
        lambda x: strict.maximum(x, HOST),
        lambda x: strict.where(HOST > 2, x, 0),
        lambda x: strict.asarray([x, x]),
        lambda x: strict.add.at(HOST, IDS, x),
        lambda x: strict.add.at(x, np.array([0, 1]), x),
        lambda x: strict.add.at(x, IDS, HOST),
    ],
}


@pytest.mark.parametrize(
    "action", [pytest.param(act, id=name) for name, acts in REFUSED.items() for act in acts]
)
def test_what_a_gpu_refuses_is_refused(action, x):
    assert is_refused(action, x)


@pytest.mark.parametrize("op", [*OPERATORS, operator.matmul])
def test_operands_from_host_and_device_do_not_mix(op, x):
    assert is_refused(op, x, HOST.T if op is operator.matmul else HOST)
    assert is_refused(op, HOST.copy(), x.T if op is operator.matmul else x)
    assert is_refused(op, x, HOST.tolist())


@pytest.mark.parametrize("op", [*OPERATORS[:4], *OPERATORS[5:]])
@pytest.mark.parametrize("scalar", [2, 2.0, True, np.float32(2), np.int64(2)])
def test_operands_may_be_scalars(op, scalar, x):
    expected = op(HOST.copy(), scalar)
    assert np.array_equal(op(x, scalar).get(), expected)


def test_an_index_out_of_range_is_an_error(x):
    with pytest.raises(IndexError):
        x[strict.asarray([0, 2])]


def test_assigning_to_an_index_twice_is_an_error(x):
    with pytest.raises(IndexError, match="twice"):
        x[strict.asarray([1, 1])] = x
    with pytest.raises(IndexError, match="twice"):
        x[strict.asarray([1, 1])] += 1
    x[strict.asarray([1, 0])] = x


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "any"])
def test_reductions_stay_on_the_device_as_0d_arrays(name, x):
    total = getattr(x, name)()
    assert type(total) is type(x)
    assert total.shape == ()
    assert type(total + 1) is type(x)
    assert total.get() == getattr(HOST, name)()
    assert getattr(x, name)(axis=0, keepdims=True).shape == (1, 3)


def test_a_0d_array_is_updated_in_place(x):
    total = x.sum()
    same = total
    total += 1
    assert same is total
    assert float(same) == HOST.sum() + 1
    total.fill(0)
    assert float(same) == 0


def test_copies_own_what_they_hold(x):
    for copy in (x.copy(), x.astype(np.float32), x.get()):
        copy.fill(0)
    assert np.array_equal(x.get(), HOST)
    assert x.astype(np.float32, copy=False) is x


def test_an_element_is_a_view_as_in_cupy(x):
    element = x[1, 2]
    x[1] = 0
    assert float(element) == 0


def test_a_0d_array_promotes_with_its_dtype_and_a_python_scalar_does_not(x):
    wide = strict.asarray(np.float64(2))
    assert (x * wide).dtype == np.float64
    assert (x * np.float64(2)).dtype == np.float64
    assert (x * 2.0).dtype == np.float32
    assert strict.where(x > 2, x, -strict.inf).dtype == np.float32
    assert strict.maximum(x, 0.5).dtype == np.float32


def test_what_it_does_not_know_it_names(x):
    with pytest.raises(AttributeError, match=r"function 'einsum'.*strict_cupy\.py"):
        strict.einsum  # noqa: B018
    with pytest.raises(AttributeError, match=r"attribute 'tolist'.*strict_cupy\.py"):
        x.tolist()


def test_memory_that_nobody_wrote_is_not_zero():
    assert np.isnan(strict.empty((2, 3), np.float32).get()).all()


def test_random_numbers_are_float64_unless_asked_otherwise_and_follow_the_seed():
    first, again = (strict.random.default_rng(5) for _ in range(2))
    assert np.array_equal(first.random((2, 3)).get(), again.random((2, 3)).get())
    assert first.random(4).dtype == np.float64
    assert first.random(4, dtype=np.float32).dtype == np.float32


def test_a_record_knows_the_dtypes_of_temporaries(x):
    with strict.record() as record:
        (x * strict.asarray(np.float64(2))).astype(np.float32)
    assert record.dtypes == {np.dtype(np.float64), np.dtype(np.float32)}
    with strict.record() as record:
        (x * 2.0).sum()
    assert record.dtypes == {np.dtype(np.float32)}


@pytest.mark.parametrize("wait", [
    lambda x: x.get(),
    lambda x: float(x[0, 0]),
    lambda x: int(x[0, 0]),
    lambda x: bool((x > 0).any()),
    lambda x: strict.nonzero(x),
    lambda x: x[x > 2],
    lambda x: x.__setitem__(x > 2, 0),
    lambda x: strict.cuda.Device().synchronize(),
])  # fmt: skip
def test_a_record_counts_what_makes_the_host_wait(wait, x):
    with strict.record() as record:
        wait(x)
    assert record.waits == 1
    wait(x)
    assert record.waits == 1


def test_computing_does_not_wait(x):
    with strict.record() as record:
        y = strict.exp(x @ x.T)
        y[0] += y.sum(axis=1)
    assert record.waits == 0


def test_a_record_counts_copies_from_the_host(x):
    with strict.record() as record:
        strict.asarray(HOST)
        strict.asarray([1, 2])
        assert strict.asarray(x) is x
        strict.asarray(x, dtype=np.float64)
    assert record.uploads == 2


def test_an_array_is_computed_with_where_it_is_current(x):
    with strict.cuda.Device(1):
        for refused in (lambda: x + 1, lambda: strict.exp(x), lambda: x.__iadd__(1)):
            with pytest.raises(ValueError, match="on device 0, and 1 is current"):
                refused()
        there = strict.asarray(HOST)
        there += 1
    assert np.array_equal((x + 1).get(), there.get())
    with pytest.raises(ValueError, match="on device 1, and 0 is current"):
        there + 1


def test_a_new_thread_begins_with_the_first_device(x):
    with strict.cuda.Device(1):
        assert np.array_equal(in_a_thread(lambda: (x + 1).get()), HOST + 1)
