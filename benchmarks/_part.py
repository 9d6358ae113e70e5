"""A part of a report: a command in a process of its own, which is stopped when its time is over."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).parent.parent
GRACE = 10  # seconds from Ctrl-C to the end, in which a training saves
INTERRUPTED = 130  # the exit status of a training that has saved
LONGEST_OUTPUT = 20_000  # characters: the last ones say how it ended


@dataclass(frozen=True)
class Part:
    """What is to be run.

    Attributes:
        name: of one word; of its files, too.
        kind: of its result, as the report shows it.
        title: what it is, for people.
        command: arguments of Python.
        seconds: after so many it gets what Ctrl-C sends, and is killed GRACE later.
        read: function without arguments that returns the result, ready for JSON.
        may_be_cut: whether it has a result, too, when its time was over.
    """

    name: str
    kind: str
    title: str
    command: list
    seconds: float
    read: Callable = lambda: None
    may_be_cut: bool = False


def run(part, folder, environment):
    """Run a Part; what came of it as a dict, ready for JSON.

    Whatever the command has started ends with it.

    Args:
        part: the Part.
        folder: where what it prints is kept, in a file.
        environment: variables to add to those of this process.
    """
    file, late = folder / f"{part.name}.txt", False
    start = perf_counter()
    with file.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *map(str, part.command)],
            cwd=ROOT,
            env=os.environ | {"PYTHONUNBUFFERED": "1"} | environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that its processes can be ended together
        )
        try:
            process.wait(part.seconds)
        except subprocess.TimeoutExpired:
            late = True
            _send(process, signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
        finally:
            _send(process, signal.SIGKILL)
            process.wait()
    outcome = {
        "name": part.name,
        "kind": part.kind,
        "title": part.title,
        "command": shlex.join(["python", *map(str, part.command)]),
        "limit_seconds": part.seconds,
        "seconds": perf_counter() - start,
        "exit_status": process.returncode,
        "output": file.read_text(encoding="utf-8", errors="replace")[-LONGEST_OUTPUT:],
    }
    return outcome | _ending(part, process.returncode, late, outcome["output"])


def _ending(part, status, late, output):
    """Its ``status`` in a word, with the ``result`` if there is one, or else the ``problem``."""
    cut = late and part.may_be_cut and status == INTERRUPTED
    if status and late and not cut:
        return {"status": "stopped", "problem": f"not done after {part.seconds:g} seconds"}
    if status and not cut:
        said = [line for line in output.splitlines() if line.strip()]
        return {"status": "failed", "problem": said[-1].strip() if said else "it said nothing"}
    try:
        return {"status": "cut" if cut else "done", "result": part.read()}
    except Exception as error:  # whatever is wrong with its files, the other parts go on
        problem = f"its result cannot be read: {type(error).__name__}: {error}"
        return {"status": "failed", "problem": problem}


def _send(process, signum):
    with suppress(ProcessLookupError, PermissionError):  # all of them have ended
        os.killpg(process.pid, signum)
