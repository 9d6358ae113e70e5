"""Devices are chosen at run time, say what is wrong with them, and exchange arrays on request."""

import ast
import pickle
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from on_device import STAND_IN
from strict_cupy import strict

import minitransformer
from minitransformer.core.backend import (
    CPU,
    Device,
    DeviceError,
    array_namespace,
    is_array,
    select_device,
    to_host,
)

PACKAGE = Path(minitransformer.__file__).parent


class FakeCupy(ModuleType):
    """What is asked of CuPy when a device is chosen, and ways in which it can fail.

    Attributes:
        current: the GPU that work goes to.
        computed_on: the GPUs that have computed something.
    """

    class ndarray:
        """As in CuPy up to 14.2, without ``__array_namespace__``."""

        __module__ = "cupy"

    def __init__(self, count=2, no_driver=None, failure=None):
        super().__init__("cupy")
        self.count, self.no_driver, self.failure = count, no_driver, failure
        self.current, self.computed_on = 0, []
        self.cuda = SimpleNamespace(Device=self._device)
        self.cuda.runtime = SimpleNamespace(
            getDeviceCount=self._count_devices, CUDARuntimeError=type("E", (RuntimeError,), {})
        )

    def arange(self, stop):
        if self.failure:
            raise self.failure
        self.computed_on.append(self.current)
        return np.arange(stop)

    def _count_devices(self):
        if self.no_driver:
            raise self.cuda.runtime.CUDARuntimeError(self.no_driver)
        return self.count

    def _device(self, index):
        return FakeGPU(self, index)


class FakeGPU:
    def __init__(self, cupy, index):
        self.cupy, self.index = cupy, index

    def use(self):
        self.cupy.current = self.index

    def __enter__(self):
        self.before = self.cupy.current
        self.use()

    def __exit__(self, *exception):
        self.cupy.current = self.before


UNUSABLE = {
    "not installed": None,
    "no driver": FakeCupy(no_driver="cudaErrorInsufficientDriver: too old"),
    "no devices": FakeCupy(count=0),
    "no compiler": FakeCupy(failure=ImportError("libnvrtc.so not found")),
    "no memory": FakeCupy(failure=MemoryError("out of memory")),
}


@pytest.fixture
def install(monkeypatch):
    """Put a module, or None for a missing one, where ``import cupy`` finds it."""
    return lambda cupy: monkeypatch.setitem(sys.modules, "cupy", cupy)


def test_cpu_is_numpy():
    assert select_device("cpu") is CPU
    assert CPU.xp is np


@pytest.mark.parametrize("name", ["gpu", "CPU", "cuda:", "cuda:x", "cuda:-1", "cuda1", "cpu:0", ""])
def test_an_unknown_device_name_is_refused_with_the_known_ones(name, install):
    install(FakeCupy())
    with pytest.raises(ValueError, match=f"unknown device '{name}'; choose .*'cuda:N'"):
        select_device(name)


@pytest.mark.parametrize("cupy", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_auto_is_the_cpu_without_a_usable_gpu(cupy, install):
    install(cupy)
    assert select_device("auto") is CPU
    assert select_device() is CPU


@pytest.mark.parametrize("name", ["auto", "cuda", "cuda:0"])
def test_the_first_usable_gpu_is_chosen(name, install):
    install(cupy := FakeCupy())
    device = select_device(name)
    assert device == Device("cuda:0", cupy)
    assert device.xp is cupy


def test_the_gpu_asked_for_is_tried_and_made_current(install):
    install(cupy := FakeCupy(count=2))
    assert str(select_device("cuda:1")) == "cuda:1"
    assert cupy.computed_on == [1]
    assert cupy.current == 1


def test_a_device_in_another_process_is_the_one_of_its_name(install):
    install(cupy := FakeCupy(count=2))
    stored = pickle.dumps(select_device("cuda:1"))
    cupy.current = 0
    assert str(pickle.loads(stored)) == "cuda:1"
    assert cupy.current == 1
    install(None)
    with pytest.raises(DeviceError, match="CuPy does not import"):
        pickle.loads(stored)
    assert pickle.loads(pickle.dumps(CPU)) is CPU


@pytest.mark.parametrize(("problem", "says"), [
    ("not installed", "CuPy does not import .*gpu12.*gpu13"),
    ("no driver", r"no CUDA device answers \(cudaErrorInsufficientDriver.*choose device 'cpu'"),
    ("no devices", "this machine has 0"),
    ("no compiler", "fails at a sum .*libnvrtc.so not found.*gpu12.*gpu13"),
    ("no memory", "fails at a sum .*out of memory"),
])  # fmt: skip
def test_an_unusable_gpu_says_what_is_missing(problem, says, install):
    install(UNUSABLE[problem])
    with pytest.raises(DeviceError, match=f"device 'cuda' is not usable: .*{says}"):
        select_device("cuda")


def test_a_gpu_beyond_the_last_one_is_refused_and_changes_nothing(install):
    install(cupy := FakeCupy(count=2))
    with pytest.raises(DeviceError, match=r"'cuda:2'.*GPU number 3 and this machine has 2"):
        select_device("cuda:2")
    assert cupy.current == 0
    assert cupy.computed_on == []


def test_arrays_know_their_namespace(device):
    x = device.asarray([1.0, 2.0])
    assert is_array(x)
    assert array_namespace(x) is device.xp
    assert array_namespace(x.sum()) is device.xp


def test_arrays_of_cupy_are_known_although_they_do_not_answer_for_themselves(install):
    install(cupy := FakeCupy())
    x = cupy.ndarray()
    assert is_array(x)
    assert array_namespace(x) is cupy


@pytest.mark.parametrize("x", [[1.0, 2.0], 1.0, "text", None], ids=str)
@pytest.mark.parametrize("cupy", [None, FakeCupy()], ids=["without CuPy", "with CuPy"])
def test_what_is_no_array_has_no_namespace(x, cupy, install):
    install(cupy)
    assert not is_array(x)
    with pytest.raises(TypeError, match=f"expected a NumPy or CuPy array, got {type(x).__name__}"):
        array_namespace(x)


def test_asarray_brings_anything_to_the_device(device):
    host = np.array([[1.5, 2.5]], dtype=np.float32)
    for x in (host, STAND_IN.asarray(host), [[1.5, 2.5]], device.asarray(host)):
        y = device.asarray(x, np.float32)
        assert array_namespace(y) is device.xp
        assert y.dtype == np.float32
        assert np.array_equal(to_host(y), host)


def test_asarray_returns_an_array_that_is_in_place_already(device):
    x = device.asarray(np.arange(3, dtype=np.float32))
    assert device.asarray(x) is x
    assert device.asarray(x, np.float32) is x
    assert device.asarray(x, np.float64).dtype == np.float64


def test_arrays_come_back_as_numpys(device):
    for x in (device.asarray(np.arange(3)), device.asarray([0, 1, 2])):
        for y in (CPU.asarray(x), to_host(x)):
            assert type(y) is np.ndarray
            assert np.array_equal(y, [0, 1, 2])
    total = to_host(device.asarray([2.0, 0.5]).sum())  # a scalar on NumPy, a 0-d array elsewhere
    assert type(total) is np.ndarray
    assert total == 2.5


def test_a_generator_repeats_with_its_seed_and_no_draw_is_as_the_one_before(device):
    def draws(seed):
        rng = device.generator(seed)
        return [to_host(rng.random((3, 4), dtype=np.float32)) for _ in range(2)]

    first, second = draws(1)
    assert first.dtype == np.float32
    assert np.array_equal([first, second], draws(1))
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, draws(2)[0])


def test_synchronize_waits_for_the_device(device):
    with strict.record() as record:
        device.synchronize()
    assert record.waits == (device.xp is strict)


def knowledge_of_cupy(path):
    """What the code in a file does that only one who knows NumPy from CuPy can do."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import():
                found += [alias.name for alias in node.names]
            case ast.ImportFrom(module=str(name)) | ast.Constant(value=str(name)):
                found.append(name)
            case ast.Attribute(attr="cuda"):
                found.append("cupy.cuda")
            case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[library]):
                found += ["cupy or not"] * (ast.unparse(library).split(".")[-1] in ("np", "xp"))
    return [name for name in found if re.match(r"cupy\b|cupy_", name)]


def test_nobody_but_core_and_the_twins_for_cupy_knows_numpy_from_cupy():
    knows = {path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if knowledge_of_cupy(path)}
    in_core = {Path("core/backend.py"), Path("core/staging.py")}
    assert in_core <= knows
    others = knows - in_core
    assert {path.parts[:2] for path in others} == {("accelerate", "cuda")}
