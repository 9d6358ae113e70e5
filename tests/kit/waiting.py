"""How tests wait for what other threads and processes do, however slow the machine is."""

import time

HANGS = 600  # seconds; what takes as long will never end, and is ended so that the tests go on


def until(happened):
    """Return when ``happened()`` is true."""
    deadline = time.monotonic() + HANGS
    while not happened():
        assert time.monotonic() < deadline, "what was waited for has not happened"
        time.sleep(0.01)
