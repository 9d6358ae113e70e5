"""Whole training steps in float32: each device gives what NumPy gives.

On the stand-in for CuPy they also show what would only make a GPU slow: float64 temporaries,
waiting for the device, copies from the host.
"""

from dataclasses import replace

import numpy as np
import pytest
from on_device import STAND_IN, on
from rounding import assert_but_for_rounding
from strict_cupy import strict

from minitransformer.cases.case import LABELS, SOURCE, TARGET, HostGenerator
from minitransformer.cases.models import small_config
from minitransformer.core.backend import CPU, array_namespace, to_host
from minitransformer.data.text.batches import Batch
from minitransformer.layers.dropout import dropout
from minitransformer.loss.cross_entropy import cross_entropy, cross_entropy_backward
from minitransformer.models.transformer import Transformer
from minitransformer.optim.adam import Adam

both_norms = pytest.mark.parametrize("norm", ["post", "pre"])
one_or_two_passes = pytest.mark.parametrize("kappa", [0.0, 2.0])


def batch_on(device):
    return [on(device, ids) for ids in (SOURCE, TARGET, LABELS)]


def forward_backward(model, batch, rng):
    """The two losses and everything else made on the way; the gradients are in the model."""
    source, target, labels = batch
    model.zero_grad()
    logits, cache = model.forward(source, target, rng)
    losses, loss_cache = cross_entropy(logits, labels, smoothing=0.1)
    dlogits = cross_entropy_backward(1.0, loss_cache)
    model.backward(dlogits, cache)
    return losses, (logits, cache, loss_cache, dlogits)


def float_types(dtypes):
    return {dtype for dtype in dtypes if dtype.kind == "f"}


def loss_and_gradient(model, device, kappa):
    """Both losses of a model that drops out, and its flat gradient."""
    rng = HostGenerator(device.xp)
    losses, cache = model.loss(Batch(*batch_on(device)), rng, smoothing=0.1, kappa=kappa)
    model.loss_backward(1.0, cache)
    return *losses, model.flat.grad


@one_or_two_passes
def test_the_loss_of_a_model_agrees_with_that_on_the_cpu(kappa, device):
    here, cpu = (
        loss_and_gradient(Transformer(small_config(), device=d), d, kappa) for d in (device, CPU)
    )
    for x, x_cpu in zip(here, cpu, strict=True):
        assert_but_for_rounding(x, x_cpu)
        assert x.dtype == np.float32
        assert array_namespace(x) is device.xp


@one_or_two_passes
def test_the_loss_of_a_model_makes_no_float64_and_waits_only_to_check_ids(kappa):
    model = Transformer(small_config(), device=STAND_IN)
    with strict.record() as record:
        loss_and_gradient(model, STAND_IN, kappa)
    assert float_types(record.dtypes) == {np.dtype(np.float32)}
    assert record.waits == 3  # for source, target and labels, which are there


@pytest.mark.parametrize(("home", "waits", "uploads"), [
    (CPU, 0, 5),  # ids are checked on the host; two go up for the embedding and for a mask
    (STAND_IN, 3, 0),  # the check of source, target and labels
], ids=str)  # fmt: skip
def test_a_training_step_waits_for_the_device_only_to_check_ids_that_are_there(
    home, waits, uploads
):
    model, batch = Transformer(small_config(), device=STAND_IN), batch_on(home)
    adam, rng = Adam(model.flat), STAND_IN.generator(0)
    with strict.record() as record:
        forward_backward(model, batch, rng)
        adam.step(1e-3)
    assert (record.waits, record.uploads) == (waits, uploads)


@both_norms
def test_a_float32_training_step_makes_no_float64_on_the_way(norm):
    """Not even of settings that are float64 scalars, which in NumPy outweigh float32 arrays."""
    tenth, epsilon = np.float64(0.1), np.float64(1e-5)
    config = replace(small_config(norm), dropout=tenth, attention_dropout=tenth, epsilon=epsilon)
    with strict.record() as record:
        model = Transformer(config, device=STAND_IN)
        adam = Adam(model.flat)
        source, target, labels = batch_on(STAND_IN)
        logits, cache = model.forward(source, target, STAND_IN.generator(0))
        _, loss_cache = cross_entropy(logits, labels, smoothing=tenth, num_tokens=np.float64(6))
        model.backward(cross_entropy_backward(1.0, loss_cache), cache)
        adam.step(np.float64(1e-3))
    assert float_types(record.dtypes) == {np.dtype(np.float32)}


def test_dropout_with_a_devices_own_generator_keeps_the_mean(device):
    p, size = 0.3, 100_000
    x = device.asarray(np.ones(size, np.float32))
    y = to_host(dropout(x, p, device.generator(0))[0])
    standard_error = np.sqrt(p / (1 - p) / size)
    assert abs(y.mean(dtype=np.float64) - 1) < 4 * standard_error
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / (1 - p))}
