"""What every layer and every loss promises, and every model as a function of its parameters.

The rows are the package's cases. PyTorch's side of each is a function of ``torch_twin.py``; where
torch is not installed, ours is compared with what that once computed. What twins promise beside
them is in ``tests/accelerate/test_every_twin.py``.
"""

import copy
from functools import partial
from pkgutil import iter_modules
from zipfile import ZipFile

import numpy as np
import pytest
from on_device import STAND_IN, on
from parity_cases import (
    PARITY,
    STORE,
    TRAININGS,
    VECTORS,
    Kept,
    differences,
    ours,
    stored_results,
)
from rounding import FEW, assert_but_for_rounding, rounding
from strict_cupy import strict

import minitransformer.layers
import minitransformer.loss
from minitransformer.cases import CASES, layers
from minitransformer.cases import case as cases
from minitransformer.core.backend import CPU, array_namespace, is_array, to_host
from minitransformer.core.twins import standing_in
from minitransformer.gradcheck.modules import _replaced_gradients, module_pair
from minitransformer.layers.layer_norm import layer_norm_backward
from minitransformer.layers.softmax import softmax_backward

OF_PAIRS = [build.__code__ for build in (cases.pair(None, None, None), layers._relu)]
LAYERS = [case for case in CASES if not case.name.startswith("model,")]
OF_MODULES = [case for case in CASES if case.build.__code__ not in OF_PAIRS]
OF_FLOAT32 = rounding(np.float32(1), FEW)  # relative to the largest entry
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
every_layer = pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.name)
in_torch = pytest.mark.parametrize("case", PARITY, ids=lambda case: case.name)
assert_close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-12)


def as_tuple(gradients):
    return gradients if isinstance(gradients, tuple) else (gradients,)


def is_float(x):
    return is_array(x) and x.dtype.kind == "f"


def test_each_file_of_layers_and_losses_has_a_case():
    """But masks, ids and first weights, which have no gradient, and what recurrent ones share."""
    places = [*minitransformer.layers.__path__, *minitransformer.loss.__path__]
    files = {"loss" if f.name == "cross_entropy" else f.name for f in iter_modules(places)}
    tried = set(" ".join(case.name.partition(",")[0] for case in CASES).split())
    assert files - tried == {"masks", "token_ids", "first_weights", "recurrence"}


# Gradients


@every_case
def test_every_gradient_is_right_and_no_input_would_hide_a_mistake(case):
    report = case.check()
    assert report.right, f"{case.name}\n{report}"
    assert not report.warnings
    assert not any(tensor.vacuous for tensor in report.tensors)


@every_case
def test_the_gradient_of_a_sum_of_two_losses_is_the_sum_of_the_gradients(case):
    forward, backward, inputs, _ = case.build(np.random.default_rng(7))
    y, cache = forward(*inputs)
    dy_1, dy_2 = np.random.default_rng(10).standard_normal((2, *np.shape(y)))
    of_sum, *of_each = (as_tuple(backward(dy, cache)) for dy in (dy_1 + dy_2, dy_1, dy_2))
    for together, first, second in zip(of_sum, *of_each, strict=True):
        if together is not None:
            assert_close(together, first + second)


@pytest.mark.parametrize("case", OF_MODULES, ids=lambda case: case.name)
def test_backward_adds_to_the_gradients_of_parameters_and_replaces_none(case, monkeypatch):
    modules = []

    def noted(module, inputs):
        modules.append((module, inputs))
        return module_pair(module, inputs)

    monkeypatch.setattr(cases, "module_pair", noted)
    case.build(np.random.default_rng(0))
    ((module, inputs),) = modules
    assert not any(_replaced_gradients(module, inputs))


# PyTorch


@pytest.fixture
def nothing_is_dropped():
    with standing_in(Kept):
        yield


@pytest.mark.usefixtures("nothing_is_dropped")
@pytest.mark.parametrize(("case", "dtype", "tolerance"), [
    *((case, "float64", 1e-6 if case in TRAININGS else 1e-10) for case in PARITY),
    *((case, "float32", OF_FLOAT32) for case in PARITY if case in LAYERS),
], ids=lambda value: getattr(value, "name", str(value)))  # fmt: skip
def test_torch_once_computed_the_same(case, dtype, tolerance):
    results = ours(case, dtype)
    assert {x.dtype for x in results.values()} == {np.dtype(dtype)}
    errors = differences(results, stored_results(case))
    assert {name: error for name, error in errors.items() if not error <= tolerance} == {}


@in_torch
def test_the_stored_results_are_what_torch_computes_today(case):
    pytest.importorskip("torch", reason="PyTorch is not installed; its stored results remain")
    from torch_twin import results

    assert max(differences(stored_results(case), results(case)).values()) < 1e-12, STORE


def test_what_is_to_be_stored_is_and_nothing_else():
    with np.load(VECTORS, allow_pickle=False) as vectors:
        assert set(vectors) == {case.name for case in PARITY}, STORE


@pytest.mark.parametrize("entry", ZipFile(VECTORS).infolist(), ids=lambda entry: entry.filename)
def test_what_is_stored_of_a_case_is_small(entry):
    """Every file of numbers that ever was stays in the history of the repository."""
    assert entry.compress_size < 15_000, "take the sizes of cases/case.py"


def softmax_divided_by_the_batch_size(dweights, cache):
    return softmax_backward(dweights, cache) / len(dweights)


def layer_norm_with_gamma_outside_the_sums(dy, cache):
    x_hat, sigma, gamma = cache
    dx, dgamma, dbeta = layer_norm_backward(dy, (x_hat, sigma, np.ones_like(gamma)))
    return dx * gamma, dgamma, dbeta


def scatter_that_keeps_one_of_several(target, indices, values):
    target[indices] = values


@pytest.mark.usefixtures("nothing_is_dropped")
@pytest.mark.parametrize(("name", "place", "defect"), [
    ("attention, padding mask", "attention.softmax_backward", softmax_divided_by_the_batch_size),
    ("layer_norm", "layer_norm.layer_norm_backward", layer_norm_with_gamma_outside_the_sums),
    ("embedding", "embedding.scatter_add", scatter_that_keeps_one_of_several),
])  # fmt: skip
def test_known_defects_are_not_what_torch_computed(name, place, defect, monkeypatch):
    monkeypatch.setattr(f"minitransformer.layers.{place}", defect)
    by_name = {case.name: case for case in CASES}
    for case in (by_name[name], by_name["model, pre-norm, none tying"]):
        assert max(differences(ours(case), stored_results(case)).values()) > 0.01


# Devices, and float32


def run(case, device):
    """What a layer is given in float32 on ``device``; y, and by name the gradients."""
    forward, backward, inputs, names = case.build(np.random.default_rng(0))
    given = []

    def hand_over(x):
        if not is_array(x):
            return x
        given.append((on(device, x), to_host(on(device, x))))
        return given[-1][0]

    y, cache = forward(*map(hand_over, inputs))
    dy = hand_over(np.asarray(np.random.default_rng(1).standard_normal(y.shape)))
    gradients = zip(names, as_tuple(backward(dy, cache)), strict=False)  # not of masks and ids
    return given, y, {name: dx for name, dx in gradients if dx is not None}


@every_layer
def test_a_layer_gives_on_every_device_what_it_gives_on_numpy(case, device):
    _, y, gradients = run(case, device)
    _, y_cpu, gradients_cpu = run(case, CPU)
    _, _, inputs, names = case.build(np.random.default_rng(0))
    shapes = {n: x.shape for n, x in zip(names, inputs, strict=True) if is_float(x)}
    assert {name: dx.shape for name, dx in gradients.items()} == shapes
    for result, expected in zip(
        (y, *gradients.values()), (y_cpu, *gradients_cpu.values()), strict=True
    ):
        assert_but_for_rounding(result, expected)
        assert result.dtype == np.float32
        assert array_namespace(result) is device.xp


@every_layer
def test_a_layer_never_writes_to_what_it_is_given(case, device):
    for x, before in run(case, device)[0]:
        np.testing.assert_array_equal(to_host(x), before)


@every_layer
def test_a_layer_in_float32_makes_no_float64_on_the_way(case):
    with strict.record() as record:
        run(case, STAND_IN)
    assert {dtype for dtype in record.dtypes if dtype.kind == "f"} == {np.dtype(np.float32)}


# Purity


def frozen(x):
    """Make all arrays in x read-only, however deep in tuples and lists."""
    if isinstance(x, np.ndarray):
        x.flags.writeable = False
    elif isinstance(x, tuple | list):
        for item in x:
            frozen(item)
    return x


@every_case
def test_neither_inputs_nor_upstream_gradients_nor_caches_are_written_to(case):
    forward, backward, inputs, _ = case.build(np.random.default_rng(7))
    y, cache = forward(*frozen(copy.deepcopy(inputs)))
    dy = frozen(np.random.default_rng(8).standard_normal(np.shape(y)))
    first = as_tuple(backward(dy, frozen(cache)))
    again = as_tuple(backward(dy, cache))
    for gradient, same in zip(first, again, strict=True):
        np.testing.assert_array_equal(gradient, same)


@every_case
def test_gradients_can_be_written_to(case):
    forward, backward, inputs, _ = case.build(np.random.default_rng(7))
    y, cache = forward(*inputs)
    dy = np.random.default_rng(8).standard_normal(np.shape(y))
    for gradient in as_tuple(backward(dy, cache)):
        assert gradient is None or gradient.flags.writeable


@every_case
def test_forward_twice_gives_the_same(case):
    forward, _, inputs, _ = case.build(np.random.default_rng(7))
    np.testing.assert_array_equal(forward(*inputs)[0], forward(*inputs)[0])
