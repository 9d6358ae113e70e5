"""Workers give the results in order, wait for all, and share out every entry once."""

import os
import threading
import time
import warnings
from concurrent import futures
from contextvars import ContextVar

import pytest
from threadpoolctl import threadpool_info, threadpool_limits
from waiting import HANGS

from minitransformer.core import blas_threads as blas_module
from minitransformer.core import workers as workers_module
from minitransformer.core.workers import Workers, available_cores, default_shards


@pytest.mark.parametrize("count", [1, 2, 3])
def test_results_come_in_the_order_of_the_arguments_whoever_is_done_first(count):
    def late(number, wait):
        time.sleep(wait)
        return number

    results = Workers(count).map(late, range(4), (0.03, 0.02, 0.01, 0))
    assert results == [0, 1, 2, 3]


def test_as_many_calls_as_workers_run_side_by_side():
    together = threading.Barrier(3, timeout=HANGS)
    numbers = Workers(3).map(lambda _: together.wait(), range(3))
    assert sorted(numbers) == [0, 1, 2]


def test_one_worker_is_the_calling_thread():
    assert Workers(1).map(lambda _: threading.get_ident(), [0]) == [threading.get_ident()]


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 20, 1000])
def test_ranges_cover_every_entry_once_and_are_of_almost_one_length(count, length):
    ranges = Workers(count).ranges(length)
    entries = [i for part in ranges for i in range(length)[part]]
    assert entries == list(range(length))
    lengths = [part.stop - part.start for part in ranges]
    assert len(ranges) == count
    assert max(lengths) - min(lengths) <= 1


def test_an_error_is_raised_only_when_no_thread_works_on():
    done = []

    def fail_or_work(number):
        if number in (1, 3):
            raise ValueError(f"number {number}")
        time.sleep(0.05)
        done.append(number)

    with pytest.raises(ValueError, match="number 1"):
        Workers(4).map(fail_or_work, range(4))
    assert sorted(done) == [0, 2]


def test_workers_go_on_after_an_error():
    workers = Workers(2)
    with pytest.raises(ZeroDivisionError):
        workers.map(lambda x: 1 / x, [0, 0])
    assert workers.map(lambda x: 1 / x, [1, 2]) == [1, 0.5]


@pytest.mark.parametrize("count", [1, 3])
def test_threads_see_the_context_of_the_caller(count):
    variable = ContextVar("variable", default="default")
    workers = Workers(count)
    assert workers.map(lambda _: variable.get(), range(3)) == ["default"] * 3
    token = variable.set("set")
    assert workers.map(lambda _: variable.get(), range(3)) == ["set"] * 3
    variable.reset(token)
    assert workers.map(lambda _: variable.get(), range(3)) == ["default"] * 3


# How many


@pytest.fixture
def cores(monkeypatch, tmp_path):
    """Sets how many cores this process may run on, and for how much of the time."""
    monkeypatch.setattr(workers_module, "QUOTA", tmp_path / "cpu.max")

    def limit(count, quota=None):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(count)), raising=False)
        if quota:
            (tmp_path / "cpu.max").write_text(f"{quota}\n")

    return limit


@pytest.mark.parametrize(("count", "quota", "available"), [
    (8, None, 8),
    (8, "max 100000", 8),
    (8, "400000 100000", 4),
    (8, "250000 100000", 2),
    (8, "50000 100000", 1),
    (2, "400000 100000", 2),
])  # fmt: skip
def test_cores_are_those_of_the_affinity_or_fewer_by_a_quota(cores, count, quota, available):
    cores(count, quota)
    assert available_cores() == available


@pytest.mark.parametrize(
    ("count", "batch_tokens", "shards"),
    [(4, 4096, 4), (1, 4096, 1), (64, 4096, 16), (2, 768, 2), (4, 400, 1)],
)
def test_a_cpu_has_a_shard_for_each_core_unless_they_would_be_tiny(count, batch_tokens, shards):
    assert default_shards(batch_tokens, count) == shards


def test_ctrl_c_leaves_no_thread_that_writes_on(monkeypatch):
    begun, ended = threading.Event(), threading.Event()

    def call(number):
        begun.set()
        time.sleep(0.2)
        ended.set()

    def interrupted_once(calls):
        monkeypatch.undo()
        begun.wait()
        raise KeyboardInterrupt

    monkeypatch.setattr(futures, "wait", interrupted_once)
    with pytest.raises(KeyboardInterrupt):
        Workers(2).map(call, [1, 2])
    assert ended.is_set()


# Threads and processes of others


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture
def blas_of_two_threads():
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("this BLAS cannot be told how many threads to use")
        yield


def test_several_workers_have_a_blas_of_one_thread_each(blas_of_two_threads):
    with Workers(2).one_blas_thread():
        assert blas_threads() == {1}
    assert blas_threads() == {2}
    with Workers(1).one_blas_thread():
        assert blas_threads() == {2}


def test_the_blas_has_all_its_threads_again_when_the_last_of_several_callers_is_done(
    blas_of_two_threads,
):
    """They begin one after the other and end in the same order, so that no two are nested."""
    workers, go_on = Workers(2), [threading.Event() for _ in range(3)]
    seen = []

    def call(number, begun):
        with workers.one_blas_thread():
            begun.set()
            go_on[number].wait(HANGS)
            seen.append(blas_threads())

    callers = []
    for number in range(3):
        begun = threading.Event()
        callers.append(threading.Thread(target=call, args=(number, begun)))
        callers[-1].start()
        assert begun.wait(HANGS)
    for caller, event in zip(callers, go_on, strict=True):
        event.set()
        caller.join(HANGS)
    assert seen == [{1}] * 3
    assert blas_threads() == {2}


def test_without_threadpoolctl_the_blas_of_a_process_keeps_its_threads(
    blas_of_two_threads, without, monkeypatch
):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # or there is a warning
    monkeypatch.setattr(blas_module, "_threadpoolctl", blas_module._threadpoolctl.__wrapped__)
    before = blas_threads()
    without("threadpoolctl")
    blas_module.limit_blas_threads(1)
    assert blas_threads() == before


def in_a_fork(function):
    """The exit status of a process forked off here that calls ``function``; -9 if it hangs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, of forks with threads
        child = os.fork()
    if child == 0:
        try:
            function()
            os._exit(0)
        except BaseException:
            os._exit(1)
    alarm = threading.Timer(HANGS, os.kill, (child, 9))
    alarm.start()
    status = os.waitpid(child, 0)[1]
    alarm.cancel()
    return os.waitstatus_to_exitcode(status)


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")


@forks
def test_workers_work_in_a_process_forked_off_after_they_did():
    workers = Workers(2)

    def double():
        assert workers.map(lambda x: 2 * x, [1, 2, 3]) == [2, 4, 6]

    double()
    assert in_a_fork(double) == 0
    double()


@forks
def test_a_process_forked_off_amid_the_work_of_another_thread_has_the_whole_blas(
    blas_of_two_threads,
):
    workers, begun, go_on = Workers(2), threading.Event(), threading.Event()

    def work():
        with workers.one_blas_thread():
            begun.set()
            go_on.wait(HANGS)

    def see():
        assert blas_threads() == {2}
        with workers.one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {2}

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(HANGS)
    try:
        assert in_a_fork(see) == 0
    finally:
        go_on.set()
        thread.join(HANGS)
    assert blas_threads() == {2}


@forks
def test_a_process_forked_off_amid_its_own_work_goes_on_with_a_blas_of_one_thread(
    blas_of_two_threads,
):
    def work_on():
        assert blas_threads() == {1}
        limited.__exit__(None, None, None)
        assert blas_threads() == {2}

    limited = Workers(2).one_blas_thread()
    with limited:
        assert in_a_fork(work_on) == 0
