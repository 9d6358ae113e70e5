"""How a process is asked to stop, and what a shell reports of one that did.

signal    who asks                                                    exit status
SIGINT    Ctrl-C                                                      130
SIGTERM   kill, a batch system, a container or machine that ends      143
SIGHUP    a terminal that is closed, a connection that is lost        129

Whoever starts a process may have it ignore some of them: nohup SIGHUP, a shell without job control
the SIGINT of what runs in the background. These stay ignored. Python handles signals in its main
thread; in another thread nothing here changes anything.
"""

import os
import signal
import sys
import threading
from contextlib import contextmanager

SIGNALS = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if hasattr(signal, name)  # Windows has no SIGHUP
]


class Interrupt(KeyboardInterrupt):
    """What Ctrl-C raises, for any of the signals.

    Attributes:
        signum: the signal.
    """

    def __init__(self, signum):
        super().__init__()
        self.signum = signum


class Stopped(Exception):
    """A training was asked to stop; it is saved and can be resumed.

    Attributes:
        signum: the signal that asked.
    """

    def __init__(self, signum):
        super().__init__(signum)
        self.signum = signum


def exit_status(interrupt):
    """What a shell reports of a command that a KeyboardInterrupt, or another stop, has ended."""
    return 128 + getattr(interrupt, "signum", signal.SIGINT)


@contextmanager
def interrupts_raised():
    """Let each signal raise an Interrupt, wherever the program is."""

    def interrupt(signum, frame):
        raise Interrupt(signum)

    with _handled_by(interrupt):
        yield


@contextmanager
def stopped_by_interrupts():
    """Let each signal raise Stopped, wherever the program is: for work that is begun again."""
    try:
        with interrupts_raised():
            yield
    except Interrupt as interrupt:
        raise Stopped(interrupt.signum) from interrupt


_noted = []  # the list of each interrupts_noted that is under way, the innermost one last


@contextmanager
def interrupts_noted():
    """Yields a list to which each signal adds its number, for who looks at it between two steps.

    A second request raises an Interrupt if it is Ctrl-C, whose user cannot wait. Other senders
    repeat themselves, such as a shell and the system when a terminal is closed.
    """
    signals = []

    def note(signum, frame):
        if signals and signum == signal.SIGINT:
            raise Interrupt(signum)
        signals.append(signum)

    with _handled_by(note):
        _noted.append(signals)
        try:
            yield signals
        finally:
            _noted.pop()


def noted():
    """The signals that an :func:`interrupts_noted` has noted, if one is under way, as a list."""
    return _noted[-1] if _noted else []


@contextmanager
def _handled_by(handler):
    before = {}
    if threading.current_thread() is threading.main_thread():
        for signum in SIGNALS:
            # None is a handler that is not Python's, which could not be put back.
            if signal.getsignal(signum) not in (signal.SIG_IGN, None):
                before[signum] = signal.signal(signum, handler)
    try:
        yield
    finally:
        for signum, previous in before.items():
            signal.signal(signum, previous)


# While the command imports what it needs


def _exit(signum, frame):
    os._exit(128 + signum)


def end_quietly_while_importing():
    """Let Ctrl-C end the command without a traceback until ``main`` of the command line runs.

    No ``try`` of ours can: Python imports the whole package before it comes to ``__main__`` or to
    the function ``main``. There is nothing to clean up yet. Other programs that import the package
    are left alone.
    """
    told_to_run = sys.orig_argv[-len(sys.argv) :][:1]  # sys.argv without Python's own options
    names = [os.path.splitext(os.path.basename(word))[0] for word in told_to_run]
    is_the_command = names == ["minitransformer"]
    if is_the_command and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit)


def importing_is_over():
    """Take back :func:`end_quietly_while_importing`: from here on Ctrl-C raises and is caught."""
    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, signal.default_int_handler)
