"""What all tests share: the devices they run on, and property tests that repeat themselves."""

import signal
import sys

import pytest
from strict_cupy import strict

import minitransformer.accelerate  # noqa: F401  # or else a twin that a test replaces is not put back
from minitransformer.backend import Device, DeviceError, select_device

try:
    import hypothesis
except ImportError:  # only tests of properties need it
    pass
else:
    hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
    hypothesis.settings.load_profile("repeatable")


@pytest.fixture(scope="session", autouse=True)
def _interrupts_arrive():
    """Tests that a shell runs in the background inherit from it that interrupts are ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(
    scope="module", params=["cpu", "stand-in", pytest.param("cuda", marks=pytest.mark.gpu)]
)
def device(request):
    """Each place where arrays can be: NumPy, the strict stand-in for CuPy, and a usable GPU."""
    if request.param == "stand-in":
        return Device("stand-in", strict)
    try:
        return select_device(request.param)
    except DeviceError as error:
        pytest.skip(str(error))


@pytest.fixture
def without(monkeypatch):
    """Makes a library missing: an import of it fails, and so does one of a module within it."""

    def hide(library):
        within = [name for name in sys.modules if name.startswith(f"{library}.")]
        for name in (library, *within):
            monkeypatch.setitem(sys.modules, name, None)

    return hide
