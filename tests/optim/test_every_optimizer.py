"""What every optimizer promises; a new one is a row in ``tests/kit/optimizers.py``."""

import numpy as np
import pytest
from optimizers import ROWS
from rounding import assert_but_for_rounding

from minitransformer import CPU, Adam, Transformer, accelerated
from minitransformer.cases.models import small_config
from minitransformer.core.module import FlatParameters, Module, Parameter
from minitransformer.core.workers import Workers

RATES = [1e-3, 2e-3, 5e-2, 3e-3, 1e-2, 1e-1]
SIZE = 12

every_optimizer = pytest.mark.parametrize("new", [row.new for row in ROWS], ids=map(str, ROWS))


class TwoParameters(Module):
    def __init__(self, dtype=np.float64):
        data = np.random.default_rng(0).standard_normal(SIZE).astype(dtype)
        self.a, self.b = Parameter(data[:8].reshape(2, 4)), Parameter(data[8:])


def flat_parameters(device=CPU, dtype=np.float64):
    return FlatParameters(TwoParameters().to(device, dtype))


def gradients():
    return np.random.default_rng(1).standard_normal((len(RATES), SIZE))


def trained(new, flat, device=CPU, **options):
    """The optimizer after a step at each of the rates."""
    optimizer = new(flat)
    for rate, gradient in zip(RATES, gradients(), strict=True):
        flat.grad[:] = device.asarray(gradient, flat.grad.dtype)
        optimizer.step(rate, 0.5, **options)
    return optimizer


@pytest.mark.parametrize("row", [row for row in ROWS if row.theirs], ids=str)
def test_it_goes_the_way_of_pytorch(row):
    torch = pytest.importorskip("torch")
    flat = flat_parameters()
    theirs = torch.tensor(flat.data, requires_grad=True)
    optimizer = getattr(torch.optim, row.theirs)([theirs], lr=1.0, **row.settings, **row.options)
    for rate, gradient in zip(RATES, gradients(), strict=True):
        theirs.grad = torch.tensor(0.5 * gradient)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
    trained(row.new, flat)
    np.testing.assert_allclose(flat.data, theirs.detach().numpy(), rtol=1e-13)


@every_optimizer
def test_a_step_counts_once_however_many_parameters_there_are(new):
    assert new(flat_parameters()).t == 0
    assert trained(new, flat_parameters()).t == len(RATES)


@every_optimizer
def test_the_gradient_is_read_and_not_written(new):
    flat = flat_parameters()
    flat.grad[:] = before = gradients()[0]
    flat.grad.flags.writeable = False
    optimizer = new(flat)
    optimizer.step(0.1)
    optimizer.step(0.1)
    np.testing.assert_array_equal(flat.grad, before)


@every_optimizer
@pytest.mark.parametrize("awake", [False, True])
def test_workers_that_share_an_update_change_no_bit_of_it(new, awake):
    alone, shared = flat_parameters(), flat_parameters()
    with accelerated(awake):
        trained(new, alone)
        trained(new, shared, workers=Workers(3, 2))
    assert alone.data.tobytes() == shared.data.tobytes()


@every_optimizer
def test_each_device_gives_what_numpy_gives_in_the_type_of_the_parameters(new, device):
    here, there = flat_parameters(dtype=np.float32), flat_parameters(device, np.float32)
    trained(new, here)
    data = there.data
    optimizer = trained(new, there, device)
    assert there.data is data
    assert {x.dtype for x in (data, *optimizer.vectors.values())} == {np.dtype(np.float32)}
    assert_but_for_rounding(data, here.data)


@every_optimizer
def test_a_rate_of_another_type_changes_no_type(new):
    flat = flat_parameters(dtype=np.float32)
    flat.grad += 1
    optimizer = new(flat)
    optimizer.step(np.float64(0.1))
    assert {x.dtype for x in (flat.data, *optimizer.vectors.values())} == {np.dtype(np.float32)}


@every_optimizer
def test_one_that_has_its_vectors_and_its_count_goes_on_as_if_nothing_had_happened(new):
    whole, cut = flat_parameters(), flat_parameters()
    trained(new, whole)
    first, second = new(cut), new(cut)
    for i, (rate, gradient) in enumerate(zip(RATES, gradients(), strict=True)):
        if i == 3:
            second.t = first.t
            for name, vector in second.vectors.items():
                vector[:] = first.vectors[name]
        cut.grad[:] = gradient
        (first if i < 3 else second).step(rate, 0.5)
    assert cut.data.tobytes() == whole.data.tobytes()


@every_optimizer
def test_a_rate_of_zero_moves_nothing_but_remembers_the_gradient(new):
    flat = flat_parameters()
    before = flat.data.copy()
    flat.grad[:] = 2
    optimizer = new(flat)
    optimizer.step(0.0)
    np.testing.assert_array_equal(flat.data, before)
    assert all(vector.any() for vector in optimizer.vectors.values())


def test_the_constants_of_adam_are_those_of_section_5_3():
    adam = Adam(flat_parameters())
    assert (adam.beta_1, adam.beta_2, adam.epsilon) == (0.9, 0.98, 1e-9)


@every_optimizer
def test_what_is_not_flat_storage_is_refused(new):
    with pytest.raises(TypeError, match=r"updates FlatParameters, model\.flat, and got"):
        new(Transformer(small_config()))


@every_optimizer
def test_one_of_a_model_that_was_moved_since_is_refused(new):
    model = Transformer(small_config())
    optimizer = new(model.flat)
    model.to(dtype=np.float64)
    name = type(optimizer).__name__
    with pytest.raises(RuntimeError, match=f"make {name} after moving"):
        optimizer.step(0.1)
