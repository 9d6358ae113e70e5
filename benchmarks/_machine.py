"""What a measurement was made on and with: said beside every figure."""

import os
import platform
import resource
import shlex
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy  # noqa: F401  # loads the BLAS that threadpool_info is to find
from threadpoolctl import threadpool_info

TORCH = "torch==2.13.0"
PACKAGES = ("minitransformer", "numpy", "cupy-cuda12x", "cupy-cuda13x", "torch")
FORCED_KERNELS = "OPENBLAS_CORETYPE"
VARIABLES = ("OPENBLAS_", "OMP_", "MKL_", "MALLOC_", "CUPY_", "GOTO_")
FOLDERS = ("--data-dir",)  # options that name a folder of this machine


def machine(command):
    """Hardware, versions and settings as a dict; ``command`` is a list of arguments."""
    return {
        "command": command_line(command),
        "commit": commit(),
        "cpu": cpu(),
        "cores": cores(),
        "versions": versions(),
        "environment": environment(),
    }


def cpu():
    """The processor's name; virtual machines hide it, family and model tell it all the same."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts = {}
    for line in lines:
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())
    name = facts.get("model name", platform.machine())
    if "cpu family" in facts:
        name += f" (family {facts['cpu family']}, model {facts['model']})"
    return name


def cores():
    """The cores that this process may use."""
    from minitransformer.core.workers import available_cores  # not for PyTorch's process

    return available_cores()


def versions():
    found = {"Python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def environment():
    """The environment variables that change how fast the libraries are; of a path its last name."""
    names = sorted(name for name in os.environ if name.startswith(VARIABLES))
    return {name: _elsewhere(name, os.environ[name]) for name in names}


def numpy_blas():
    """NumPy's BLAS, its version and the kernels it chose, such as ``OpenBLAS 0.3.30 SkylakeX``."""
    for library in threadpool_info():
        if library["user_api"] == "blas":
            parts = library["internal_api"], library["version"], library.get("architecture")
            return " ".join(part for part in parts if part)
    return "unknown"


def blas_of(device):
    """What multiplies matrices on a Device of ours: NumPy's BLAS, or cuBLAS on which GPU."""
    if device.name == "cpu":
        return numpy_blas()
    properties = device.xp.cuda.runtime.getDeviceProperties(device.index)
    return f"cuBLAS through CuPy, {properties['name'].decode()}"


def note_on_kernels(environment):
    """Lines to say of a result whose BLAS was not free to choose its kernels; none if it was."""
    if FORCED_KERNELS not in environment:
        return []
    return [
        f"note: {FORCED_KERNELS}={environment[FORCED_KERNELS]} forces the kernels of our BLAS; "
        "without it the BLAS chooses those of this processor"
    ]


def commit():
    """The commit of the code, with a mark when the package was changed since."""
    folder = Path(__file__).parent.parent

    def git(*arguments):
        return subprocess.run(
            ("git", "-C", folder, *arguments), capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "minitransformer")
        return git("rev-parse", "--short=10", "HEAD") + ("+changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def command_line(arguments):
    """The command as somebody else would type it: no folder of this machine stays in it.

    Args:
        arguments: name of the script, then what it was given.
    """
    script, *rest = arguments
    settings = [f"{name}={value}" for name, value in environment().items()]
    return shlex.join([*settings, "python", f"benchmarks/{script}", *without_folders(rest)])


def without_folders(arguments):
    """Arguments of a command with no folder of this machine in them, as a list."""
    words, option = [], None
    for word in arguments:
        name, equals, value = word.partition("=")
        if word.startswith("-") and equals:
            words.append(f"{name}={_elsewhere(name, value)}")
        else:
            words.append(word if word.startswith("-") else _elsewhere(option, word))
        option = word if word.startswith("-") else None
    return words


def _elsewhere(option, value):
    """What to write for the value of an option: a folder DIR, a file its name."""
    if option in FOLDERS:
        return "DIR"
    return os.path.basename(value) if os.path.isabs(value) else value


def peak_mb():
    """The most memory this process has had, in MB (10⁶ bytes).

    Linux hands ru_maxrss of a parent on to the program that it starts, so there it is read from
    the process itself.
    """
    try:
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6
