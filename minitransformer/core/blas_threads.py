"""The threads of the BLAS: one, while threads or processes of ours keep the cores busy.

Their number is one for the whole process. Callers in several threads that each put back what they
found could leave the 1 of another one behind; so here the first one in sets it, and the last one
out puts it back.
"""

import os
import threading
import warnings
from functools import cache

from minitransformer.core.libraries import library_if_there


class _OneBlasThread:
    """A context in which the BLAS of this process has one thread.

    Without threadpoolctl it changes nothing and, unless OMP_NUM_THREADS is 1, says so once.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._within = []  # the threads that are, as often as they came in
        self._limits = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._lock.acquire,
                after_in_parent=self._lock.release,
                after_in_child=self._stay_alone,
            )

    def __enter__(self):
        with self._lock:
            if not self._within:
                self._limits = _limits_of_one()
            self._within.append(threading.get_ident())

    def __exit__(self, *_):
        with self._lock:
            self._within.remove(threading.get_ident())
            self._restore_if_last()

    def _restore_if_last(self):
        if self._limits and not self._within:
            _by_any_thread(self._limits.restore_original_limits)
            self._limits = None

    def _stay_alone(self):
        """In a process forked off only the thread that forked goes on; no other comes out here."""
        self._within = [thread for thread in self._within if thread == threading.get_ident()]
        self._restore_if_last()
        self._lock.release()


ONE_BLAS_THREAD = _OneBlasThread()


def limit_blas_threads(most):
    """Let the BLAS of this process have so many threads at most, from now on."""
    threadpoolctl = _threadpoolctl()
    if threadpoolctl is None:
        return
    libraries = threadpoolctl.ThreadpoolController().select(user_api="blas")
    if any(library["num_threads"] > most for library in libraries.info()):
        _by_any_thread(lambda: threadpoolctl.threadpool_limits(most, user_api="blas"))


def _limits_of_one():
    """threadpoolctl's limits, in force, or None."""
    if _threadpoolctl() is None:
        return None
    return _by_any_thread(lambda: _libraries().limit(limits=1, user_api="blas"))


@cache
def _libraries():
    """Those that NumPy has loaded; to look for them takes as long as a step of a small model."""
    return _threadpoolctl().ThreadpoolController()


@cache
def _threadpoolctl():
    threadpoolctl = library_if_there("threadpoolctl")
    if threadpoolctl is None and os.environ.get("OMP_NUM_THREADS") != "1":
        warnings.warn(
            "without threadpoolctl the threads of the BLAS and of the workers hinder each other, "
            "which can take ten times as long; install it: python -m pip install threadpoolctl, or "
            "set OMP_NUM_THREADS=1 before the start",
            stacklevel=4,
        )
    return threadpoolctl


def _by_any_thread(change):
    """``change()`` of the number of threads; what it returns.

    threadpoolctl 3.8 passes over, without a word, what any thread asks of OpenBLAS but the one that
    asked first. Ours take turns under a lock, and who puts back need not be who has set.
    """
    openblas = _threadpoolctl().OpenBLASController
    forget_who_asked = getattr(openblas, "clear_controlling_thread", lambda force: None)
    forget_who_asked(force=True)
    try:
        return change()
    finally:
        forget_who_asked(force=True)
