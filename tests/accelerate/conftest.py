"""Where twins run: on the CPU and on a GPU, or else on the CPU in its place, from one source."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from cuda_shim.fake_cublas import HANDLE, FakeCublas
from cuda_shim.machine import Machine, build, compiler
from on_device import STAND_IN

from minitransformer.accelerate.cuda import kernels, matmul
from minitransformer.cases import layers, models
from minitransformer.core.backend import CPU, Device, DeviceError, select_device
from minitransformer.core.counter_generator import CounterGenerator
from minitransformer.layers import attention, dropout, embedding, feed_forward, layer_norm, residual
from minitransformer.loss import cross_entropy, projected_loss
from minitransformer.optim import adam

WITH_TWINS = (
    adam.adam_update,
    attention.multi_head_attention,
    attention.scaled_dot_product_attention,
    dropout.dropout,
    embedding.embedding_backward,
    feed_forward.feed_forward,
    layer_norm.layer_norm,
    cross_entropy.cross_entropy,
    projected_loss.projected_loss,
    residual.residual,
)


@dataclass
class Home:
    """A device on which twins run.

    Attributes:
        device: the Device.
        generator: from a seed, what the twins there draw from.
        same_generator: from a seed, what draws the same on the host, for the references.
        machine: that runs the kernels in place of a GPU, or None.
        cublas: that multiplies matrices in its place, or None.
    """

    device: Device
    generator: Callable
    same_generator: Callable
    machine: Machine | None = None
    cublas: FakeCublas | None = None


class ByteGenerator:
    """A generator whose floats are its bytes / 256, and its integers those of a common one."""

    def __init__(self, seed):
        self.host = np.random.default_rng(seed)

    def integers(self, high, size, dtype):
        return self.host.integers(high, size=size, dtype=dtype)

    def random(self, shape, dtype):
        size = np.prod(shape)
        words = self.integers(2**64, -(-size // 8), np.uint64)
        return words.view(np.uint8)[:size].reshape(shape).astype(dtype) / 256


def draws_in_cases(generator, patch):
    for cases in (layers, models):
        patch.setattr(cases, "HostGenerator", generator)


def gpu_of(device, patch, **stand_ins):
    draws_in_cases(lambda xp: CounterGenerator(0, xp), patch)
    there = partial(CounterGenerator, xp=device.xp)
    return Home(device, there, CounterGenerator, **stand_ins)


@pytest.fixture(scope="session")
def kernel_files(tmp_path_factory):
    """The kernels built for the CPU, by the name of Real."""
    if not compiler():
        pytest.skip("g++ is not installed")
    folder = tmp_path_factory.mktemp("kernels")
    return {real: build(folder, real) for real in kernels.REALS.values()}


@pytest.fixture
def shim(monkeypatch, kernel_files):
    """The strict stand-in for CuPy, whose arrays the kernels work on as if it were a GPU."""
    cpu = Machine(kernel_files, array=lambda x: x._data)
    monkeypatch.setattr(kernels, "run", cpu.run)
    cublas = FakeCublas()
    monkeypatch.setattr(matmul, "_cublas", lambda: (cublas, HANDLE))
    for function in WITH_TWINS:
        monkeypatch.setitem(function.twins, "strict_cupy", function.twins["cupy"])
    return gpu_of(STAND_IN, monkeypatch, machine=cpu, cublas=cublas)


@pytest.fixture(params=["shim", pytest.param("cuda", marks=pytest.mark.gpu)])
def gpu(request, monkeypatch):
    """The shim and, where there is one, a real GPU."""
    return gpu_at(request, monkeypatch)


def gpu_at(request, monkeypatch):
    if request.param == "shim":
        return request.getfixturevalue("shim")
    try:
        return gpu_of(select_device("cuda"), monkeypatch)
    except DeviceError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["cpu", "shim", pytest.param("cuda", marks=pytest.mark.gpu)])
def home(request, monkeypatch):
    """Each place where twins run.

    On the CPU the package's cases drop nothing: their p is no multiple of 1/256.
    """
    if request.param != "cpu":
        return gpu_at(request, monkeypatch)
    draws_in_cases(lambda xp: None, monkeypatch)
    return Home(CPU, ByteGenerator, ByteGenerator)
