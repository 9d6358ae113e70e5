"""What all tests share: devices, property tests that repeat themselves, how long to fuzz.

And what is said at the end of a run: how many tests were skipped, for want of what.
"""

import itertools
import os
import re
import signal
import sys
import time
from argparse import ArgumentTypeError
from collections import Counter

import pytest

# Before NumPy is there. More threads would wait for each other at matrices this small, the more so
# beside other processes that test. What several threads promise is tested with two all the same.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from on_device import STAND_IN

import minitransformer.accelerate  # noqa: F401  # or else a twin that a test replaces is not put back
from minitransformer.core.backend import DeviceError, select_device

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
    parser.addoption(
        "--require",
        type=names,
        default=(),
        metavar="NAMES",
        help=f"fail where a test was skipped for want of one of these: {','.join(WANTING)}",
    )


# What a test may want, and what stands in the reason of one that is skipped without it.
WANTING = {
    "gpu": "a GPU",
    "mpi": r"\bMPI|\bmpi",
    "torch": "[Tt]orch",
    "node": r"\bnode\b",
    "chromium": "chromium|selenium",
    "cupy": "[Cc]u[Pp]y",
    "g++": r"g\+\+",
    "multi30k": "Multi30k",
    "fashion-mnist": "Fashion-MNIST",
    "stories260k": "stories260K",
    "transformers": "transformers is not installed",
    "smollm2": "smollm2",
}


def names(text):
    """Those of ``--require``."""
    found = text.split(",") if text else []
    if unknown := set(found) - WANTING.keys():
        unknown = ", ".join(sorted(unknown))
        raise ArgumentTypeError(f"{unknown} is none of {', '.join(WANTING)}")
    return found


def skipped(config):
    """Counter of what tests, or whole files of them, were skipped for want of."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")  # a worker of xdist has none
    return Counter(map(wanted, reporter.stats.get("skipped", ()))) if reporter else Counter()


def wanted(report):
    """A name of ``WANTING``, or ``"other"``."""
    if "gpu" in getattr(report, "keywords", ()):
        return "gpu"
    *_, reason = report.longrepr
    return next((name for name, words in WANTING.items() if re.search(words, reason)), "other")


def pytest_terminal_summary(terminalreporter, config):
    counts = sorted(skipped(config).items(), key=lambda item: (-item[1], item[0]))
    said = ", ".join(f"{name} {count}" for name, count in counts) or "nothing"
    terminalreporter.line(f"skipped for want of: {said}")
    if found := missing(config):
        terminalreporter.line(f"and --require asks for {', '.join(found)}", red=True)


def missing(config):
    """What is required, and was not there."""
    return [name for name in config.getoption("--require") if name in skipped(config)]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if not session.exitstatus and missing(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


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


@pytest.fixture
def clock(monkeypatch):
    """Stops the clock, which says the sum of the seconds that time.sleep was asked for since.

    Nobody sleeps, and nothing takes any time.
    """
    slept = [0.0]
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(time, "perf_counter", lambda: sum(slept))
    return lambda: sum(slept)


@pytest.fixture(scope="session", autouse=True)
def _signals_arrive():
    """From a shell's background or nohup tests inherit that interrupts or hang-ups are ignored."""
    handlers = {"SIGINT": signal.default_int_handler, "SIGHUP": signal.SIG_DFL}
    handlers = {getattr(signal, name): h for name, h in handlers.items() if hasattr(signal, name)}
    before = {signum: signal.signal(signum, handler) for signum, handler in handlers.items()}
    yield
    for signum, handler in before.items():
        signal.signal(signum, handler)


@pytest.fixture(scope="session", autouse=True)
def _nothing_waits_for_the_disk():
    """What a flush is for, only a power cut would show."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(
    scope="module", params=["cpu", "stand-in", pytest.param("cuda", marks=pytest.mark.gpu)]
)
def device(request):
    """Each place where arrays can be: NumPy, the strict stand-in for CuPy, and a usable GPU."""
    if request.param == "stand-in":
        return STAND_IN
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
