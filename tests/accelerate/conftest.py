"""Where the CUDA kernels run: on a GPU, and without one on the CPU, from the same source."""

from dataclasses import dataclass

import pytest
import strict_cupy
from cuda_shim.fake_cublas import HANDLE, FakeCublas
from cuda_shim.machine import Machine, build, compiler

from minitransformer.accelerate.cuda import kernels, matmul
from minitransformer.cases import layers, models
from minitransformer.core.backend import Device, DeviceError, select_device
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
class Gpu:
    """A device on which the CUDA twins run.

    Attributes:
        device: the Device.
        machine: that runs the kernels in place of a GPU, or None.
        cublas: that multiplies matrices in its place, or None.
    """

    device: Device
    machine: Machine | None = None
    cublas: FakeCublas | None = None

    def generator(self, seed):
        return CounterGenerator(seed, self.device.xp)


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
    for cases in (layers, models):
        monkeypatch.setattr(cases, "HostGenerator", lambda xp: CounterGenerator(0, xp))
    for function in WITH_TWINS:
        monkeypatch.setitem(function.twins, "strict_cupy", function.twins["cupy"])
    return Gpu(Device("stand-in", strict_cupy.strict), cpu, cublas)


@pytest.fixture(params=["shim", pytest.param("cuda", marks=pytest.mark.gpu)])
def gpu(request, monkeypatch):
    """The shim and, where there is one, a real GPU."""
    if request.param == "shim":
        return request.getfixturevalue("shim")
    try:
        device = select_device("cuda")
    except DeviceError as error:
        pytest.skip(str(error))
    for cases in (layers, models):
        monkeypatch.setattr(cases, "HostGenerator", lambda xp: CounterGenerator(0, xp))
    return Gpu(device)
