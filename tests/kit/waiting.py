"""How tests wait for what other threads and processes do, however slow the machine is."""

import os
import subprocess
import sys
import time
from pathlib import Path

HANGS = 600  # seconds; what takes as long will never end, and is ended so that the tests go on


def until(happened):
    """Return when ``happened()`` is true."""
    deadline = time.monotonic() + HANGS
    while not happened():
        assert time.monotonic() < deadline, "what was waited for has not happened"
        time.sleep(0.01)


def ended(script, *arguments):
    """What a script of this folder prints, to which warnings are errors, once it has ended well."""
    command = [sys.executable, "-W", "error", Path(__file__).with_name(script), *arguments]
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    return done.stdout
