"""What comes of a function in another thread, of a program in another process, of a file."""

import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path

from waiting import HANGS


def in_a_thread(function):
    """What the function returns in a new thread."""
    returned = []
    thread = threading.Thread(target=lambda: returned.append(function()))
    thread.start()
    thread.join()
    return returned[0]


def python(*arguments, path=(), cwd=None, timeout=None, **variables):
    """What comes of a new Python, given these arguments: a CompletedProcess, its output as text.

    Args:
        path: where it looks for modules first, as ``PYTHONPATH``; as here, if nowhere is said.
        cwd: the folder that it runs in.
        timeout: the seconds after which it is ended, with an error.
        variables: of its environment, beside those that there are.
    """
    if path:
        variables["PYTHONPATH"] = os.pathsep.join(map(str, path))
    command, environment = [sys.executable, *map(str, arguments)], os.environ | variables
    options = dict(capture_output=True, encoding="utf-8", check=False)
    return subprocess.run(command, cwd=cwd, env=environment, timeout=timeout, **options)


def in_a_process(program, *arguments, **variables):
    """What a program prints in a new Python, with these ``variables`` in its environment."""
    return _printed(python("-c", program, *arguments, **variables))


def ended(script, *arguments):
    """What a script of this folder prints, to which warnings are errors, once it has ended well."""
    command = "-W", "error", Path(__file__).with_name(script), *arguments
    return _printed(python(*command, timeout=HANGS))


def _printed(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


def module_at(path):
    """The module in a file that is in no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
