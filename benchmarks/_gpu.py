"""What a device is, and why PyTorch cannot use it, as JSON on standard output.

    python benchmarks/_gpu.py cuda

It is a process of its own, so that whoever asks holds no memory of the GPU.
"""

import json
import subprocess
import sys
from contextlib import suppress

from minitransformer.core.backend import CPU, select_device
from minitransformer.core.errors import ExplainedError

DRIVER = ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")


def main(name):
    """Print the facts; the exit status says what is wrong where there is no such device."""
    try:
        device = select_device(name)
    except ExplainedError as error:
        return str(error)
    facts = {"name": "a CPU", "count": 0} if device == CPU else of_gpu(device)
    print(json.dumps({"gpu": facts, "without_torch": torch_problem(name)}))
    return 0


def of_gpu(device):
    """Name, memory and versions of a GPU and of what drives it; nothing that tells two alike."""
    runtime = device.xp.cuda.runtime
    properties = runtime.getDeviceProperties(device.index)
    return {
        "name": properties["name"].decode(),
        "memory_mb": properties["totalGlobalMem"] / 1e6,
        "compute_capability": f"{properties['major']}.{properties['minor']}",
        "count": runtime.getDeviceCount(),
        "driver": driver(),
        "cuda_of_driver": runtime.driverGetVersion(),
        "cuda": runtime.runtimeGetVersion(),
        "cupy": device.xp.__version__,
    }


def driver():
    """The version of NVIDIA's driver, or None where nvidia-smi does not say it."""
    with suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run(DRIVER, capture_output=True, text=True, check=True, timeout=10)
        return said.stdout.split("\n")[0].strip() or None
    return None


def torch_problem(name):
    """Why there is no PyTorch for the device of this name, or None if there is one."""
    try:
        import torch
    except Exception as error:  # not installed, or a library that it wants is missing
        return f"PyTorch does not import ({error})"
    if name != "cpu" and not torch.cuda.is_available():
        return f"PyTorch {torch.__version__} finds no GPU"
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
