"""A function of the package that runs a learner's file, in a process of its own.

The file may loop for ever, crash the process or end it, and print whatever it likes: the command
goes on and says so. What the function returns comes by a file, as JSON, since standard output is
the learner's; that goes to standard error.
"""

import contextlib
import faulthandler
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

from minitransformer.core.errors import ExplainedError
from minitransformer.core.interrupts import interrupts_raised

LONGEST = 10**6  # seconds that a function may take; timers do not take any number
GRACE = 1  # seconds after its time is up in which a function may say so itself
STARTING = 30  # seconds that a process may take to start, at most; mostly it takes 0.3
PACKAGE = Path(__file__).parents[1]
JOB, RESULT, TRACES = "job.json", "result.json", "traces.txt"


class ApartError(ExplainedError):
    """The function did not return; the message says what it raised, or how its process ended."""


class OutOfTimeError(ApartError):
    """It did not return in time; the message is where it was, `` (my_file.py, line 7)``."""


def run_apart(function, seconds, **arguments):
    """What ``function(**arguments)`` returns in a process of its own.

    Args:
        function: of a module of this package; it returns what JSON can hold.
        seconds: that it may take.
        arguments: what JSON can hold.

    Raises:
        ApartError: it raised something, or its process ended.
        OutOfTimeError: it took longer.
    """
    seconds = min(seconds, LONGEST)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        named = [function.__module__, function.__name__]
        job = {"function": named, "seconds": seconds, "arguments": arguments}
        Path(folder, JOB).write_text(json.dumps(job), encoding="utf-8")
        status = _run(folder, seconds)
        with contextlib.suppress(FileNotFoundError):
            result = json.loads(Path(folder, RESULT).read_text(encoding="utf-8"))
            if "error" in result:
                raise ApartError(result["error"])
            return result["returned"]
        traces = Path(folder, TRACES)
        traces = traces.read_text("utf-8", "replace") if traces.exists() else ""
    if status is None or traces.startswith("Timeout"):
        raise OutOfTimeError(_place(traces))
    ended = f"by {_signal(-status)}" if status < 0 else f"with exit status {status}"
    raise ApartError(f"its process ended {ended} before the check was over{_place(traces)}")


def _run(folder, seconds):
    """The exit status of a process that serves the folder; None if it took too long."""
    program = f"import sys; sys.path[:] = {sys.path}; import {__name__} as a; a.serve({folder!r})"
    # Its standard output is this one's standard error. A session of its own: so that all it has
    # started can be ended with it.
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.DEVNULL,
        stdout=2,
        start_new_session=True,
    )
    try:
        with interrupts_raised():
            return process.wait(seconds + GRACE + STARTING)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
        process.wait()


def serve(folder):
    """Run the function that a :func:`run_apart` has written down, and end the process."""
    folder = Path(folder)
    job = json.loads((folder / JOB).read_text(encoding="utf-8"))
    module, name = job["function"]
    function = getattr(importlib.import_module(module), name)
    with open(folder / TRACES, "w", encoding="utf-8") as traces:
        faulthandler.enable(traces)
        # By a thread that waits for no other, nor for C code.
        faulthandler.dump_traceback_later(job["seconds"] + GRACE, exit=True, file=traces)
        try:
            result = {"returned": function(**job["arguments"])}
        except ExplainedError as error:
            result = {"error": str(error)}
        except BaseException as error:  # a learner's KeyboardInterrupt, or a mistake of ours
            frames = reversed(traceback.format_tb(error.__traceback__))
            words = "".join(traceback.format_exception_only(error)).strip()
            result = {"error": words + _place("".join(frames))}
        (folder / "result").write_text(json.dumps(result), encoding="utf-8")
        os.replace(folder / "result", folder / RESULT)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # the file may have closed or replaced it
                stream.flush()
        os._exit(0)  # whatever threads and functions for the exit the file has left


def _place(traces):
    """The first line of a file of the learner's in tracebacks that begin with the last call."""
    for path, line in re.findall(r'  File "(.*)", line (\d+)', traces):
        outside = "site-packages" not in path and "<" not in path
        if outside and not any(map(Path(path).is_relative_to, (PACKAGE, sys.base_prefix))):
            return f" ({Path(path).name}, line {line})"
    return ""


def _signal(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
