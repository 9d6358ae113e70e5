"""What all tests share: devices, property tests that repeat themselves, and how long to fuzz."""

import itertools
import signal
import time

import pytest
from strict_cupy import strict

from minitransformer.backend import Device, DeviceError, select_device

try:
    import hypothesis
except ImportError:  # only tests of properties need it
    pass
else:
    hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
    hypothesis.settings.load_profile("repeatable")


def pytest_addoption(parser):
    parser.addoption(
        "--fuzz",
        type=float,
        metavar="SECONDS",
        help="how long each fuzzer invents inputs (default: a fixed number, for a few seconds)",
    )


@pytest.fixture
def fuzz_cases(request):
    """Function from a number to that many seeds, 0, 1, 2, …, or to as many as --fuzz has time for.

    Each seed makes one input, so that what fails can be made again from its number.
    """

    def seeds(number):
        seconds = request.config.getoption("--fuzz")
        if seconds is None:
            yield from range(number)
            return
        end = time.monotonic() + seconds
        yield from itertools.takewhile(lambda _: time.monotonic() < end, itertools.count())

    return seeds


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
