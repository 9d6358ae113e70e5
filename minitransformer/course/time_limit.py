"""How long a learner's function may take: a loop that never ends is stopped."""

import contextlib
import signal
import threading

from minitransformer.gradcheck import CheckError

LONGEST = 60  # seconds that the check of a part may take
ENDLESS = "is there a loop that never ends?"


@contextlib.contextmanager
def time_limit():
    """Inside, what takes more than LONGEST is stopped by a TimeoutError, where the system can.

    That is on a Unix, in its main thread.

    Yields:
        A list, which has words in it when time has passed.
    """
    passed = []

    def stop(signum, frame):
        passed.append(f"more than {LONGEST} s: {ENDLESS}")
        raise TimeoutError(passed[0])

    in_main_thread = threading.current_thread() is threading.main_thread()
    if not (hasattr(signal, "setitimer") and in_main_thread):
        yield passed
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LONGEST, 1)  # again, should the error be caught
    try:
        yield passed
    except CheckError:  # it says where
        raise
    except Exception:  # a stop in the midst of C code may come out of it as another error
        if not passed:
            raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def timely(run, *arguments):
    """What ``run(*arguments)`` returns; a CheckError where that takes more than LONGEST."""
    with time_limit() as passed:
        return run(*arguments)
    raise CheckError(f"it takes {passed[0]}")
