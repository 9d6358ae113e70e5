"""PyTorch's own modules give the same outputs, losses, gradients and training curves.

Where torch is installed it computes now; in almost any case ours is compared with what it once
computed, in float64, for the same inputs and weights. The cases are in ``parity_cases.py``, torch's
modules in ``torch_twin.py``.
"""

from zipfile import ZipFile

import numpy as np
import pytest
from parity_cases import CASES, STORE, VECTORS, differences, stored_results

from minitransformer.layers.layer_norm import layer_norm_backward
from minitransformer.layers.softmax import softmax_backward

BY_NAME = {case.name: case for case in CASES}
STORED = [case for case in CASES if case.stored]


def each_in_its_dtypes(cases):
    return pytest.mark.parametrize(
        ("case", "dtype"),
        [(case, dtype) for case in cases for dtype in case.tolerances],
        ids=lambda value: value if isinstance(value, str) else value.name,
    )


@pytest.fixture(scope="module")
def twin():
    pytest.importorskip("torch", reason="PyTorch is not installed; its stored results remain")
    import torch_twin

    return torch_twin


@each_in_its_dtypes(CASES)
def test_torch_computes_the_same(case, dtype, twin):
    arrays = case.draw()
    check(case, case.ours(arrays, dtype), case.torch(twin, arrays, dtype), dtype)


@each_in_its_dtypes(STORED)
def test_torch_once_computed_the_same(case, dtype):
    check(case, case.ours(case.draw(), dtype), stored_results(case), dtype)


@pytest.mark.parametrize("case", STORED, ids=lambda case: case.name)
def test_the_stored_results_are_what_torch_computes_today(case, twin):
    fresh = case.torch(twin, case.draw(), "float64")
    assert max(differences(stored_results(case), fresh).values()) < 1e-12, STORE


def test_what_is_to_be_stored_is_and_nothing_else():
    with np.load(VECTORS, allow_pickle=False) as vectors:
        assert set(vectors) == {case.name for case in STORED}, STORE


@pytest.mark.parametrize("entry", ZipFile(VECTORS).infolist(), ids=lambda entry: entry.filename)
def test_what_is_stored_of_a_case_is_small(entry):
    """Every file of numbers that ever was stays in the history of the repository."""
    assert entry.compress_size < 15_000, "take the sizes of cases/case.py, or stored=False"


def softmax_divided_by_the_batch_size(dweights, cache):
    return softmax_backward(dweights, cache) / len(dweights)


def layer_norm_with_gamma_outside_the_sums(dy, cache):
    x_hat, sigma, gamma = cache
    dx, dgamma, dbeta = layer_norm_backward(dy, (x_hat, sigma, np.ones_like(gamma)))
    return dx * gamma, dgamma, dbeta


def scatter_that_keeps_one_of_several(target, indices, values):
    target[indices] = values


@pytest.mark.parametrize(
    ("name", "place", "defect"),
    [
        (
            "attention, padding mask",
            "attention.softmax_backward",
            softmax_divided_by_the_batch_size,
        ),
        ("layer_norm", "layer_norm.layer_norm_backward", layer_norm_with_gamma_outside_the_sums),
        ("embedding", "embedding.scatter_add", scatter_that_keeps_one_of_several),
    ],
)
def test_known_defects_do_not_pass(name, place, defect, monkeypatch):
    monkeypatch.setattr(f"minitransformer.layers.{place}", defect)
    for case in (BY_NAME[name], BY_NAME["model, pre-norm, none tying"]):
        errors = differences(case.ours(case.draw(), "float64"), stored_results(case))
        assert max(errors.values()) > 0.01


def check(case, ours, theirs, dtype):
    assert {x.dtype for x in ours.values()} == {np.dtype(dtype)}
    too_large = {
        name: error
        for name, error in differences(ours, theirs).items()
        if not error <= case.tolerances[dtype]
    }
    assert not too_large
