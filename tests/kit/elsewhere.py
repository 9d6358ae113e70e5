"""What comes of a function in another thread, and of a program in another process."""

import os
import subprocess
import sys
import threading


def in_a_thread(function):
    """What the function returns in a new thread."""
    returned = []
    thread = threading.Thread(target=lambda: returned.append(function()))
    thread.start()
    thread.join()
    return returned[0]


def in_a_process(program, *arguments, **variables):
    """What a program prints in a new Python, with these ``variables`` in its environment."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    environment = os.environ | variables
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
