"""A side of a comparison in a process of its own, with its own memory, threads and environment.

The two processes talk in lines of JSON: ``{"call": name, "arguments": {...}}`` there and
``{"result": ...}`` or ``{"error": text}`` back.
"""

import json
import os
import subprocess
import sys
import traceback
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from _machine import TORCH
from _settings import Settings
from _workload import Workload

# With these the allocator of the C library keeps the memory that is freed, in place of returning it
# to the system and asking for it again, page by page, in the next step.
TUNED_MALLOC = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**32),
    "MALLOC_TOP_PAD_": str(2**26),
}


class SideError(RuntimeError):
    """A side failed; the message is what it said."""


class SideProcess:
    """A side that waits in another process until one of its methods is called.

    Args:
        side: ``"ours"`` or ``"torch"``.
        folder: where a Workload was saved.
        settings: Settings.
        environment: variables to add to those of this process.

    Raises:
        SideError: it cannot be started.
    """

    def __init__(self, side, folder, settings, environment=None):
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__), side, folder, json.dumps(asdict(settings))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | (environment or {}),
            text=True,
            encoding="utf-8",
        )
        try:
            self._answer()
        except SideError:
            self.close()
            raise

    def call(self, method, **arguments):
        """What the method of the side returns; waits for it.

        Raises:
            SideError: it failed, or its process ended.
        """
        request = {"call": method, "arguments": arguments}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            raise SideError(f"the process of this side ended with status {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise SideError(answer["error"])
        return answer["result"]

    def close(self):
        """End the process."""
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def require_torch():
    """End the script with a message if PyTorch is not there."""
    if find_spec("torch") is None:
        raise SystemExit(f"PyTorch is not installed; python -m pip install {TORCH}")


def _explained(error):
    """Whether it is an ExplainedError of ours; in PyTorch's process there is no such thing."""
    errors = sys.modules.get("minitransformer.core.errors")
    return bool(errors) and isinstance(error, errors.ExplainedError)


def _serve(side, folder, settings):
    """Answer the lines on standard input."""
    # What a library prints must not come between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def answer(**values):
        print(json.dumps(values), file=answers, flush=True)

    try:
        if side == "ours":
            from _our_side import OurSide as Side
        else:
            from _torch_side import TorchSide as Side
        served = Side(Workload.load(folder), Settings(**json.loads(settings)))
        answer(result=None)
        for line in sys.stdin:
            request = json.loads(line)
            answer(result=getattr(served, request["call"])(**request["arguments"]))
    except Exception as error:
        answer(error=str(error) if _explained(error) else traceback.format_exc())


if __name__ == "__main__":
    _serve(*sys.argv[1:])
