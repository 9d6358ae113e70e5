"""Workers give the results in order, wait for all, and share out every entry once."""

import os
import threading
import time
from concurrent import futures
from contextvars import ContextVar

import pytest

from minitransformer import CPU, Device
from minitransformer import workers as workers_module
from minitransformer.workers import Workers, available_cores, default_shards


@pytest.mark.parametrize("count", [1, 2, 3])
def test_results_come_in_the_order_of_the_arguments_whoever_is_done_first(count):
    def late(number, wait):
        time.sleep(wait)
        return number

    results = Workers(count).map(late, range(4), (0.03, 0.02, 0.01, 0))
    assert results == [0, 1, 2, 3]


def test_as_many_calls_as_workers_run_side_by_side():
    together = threading.Barrier(3, timeout=10)
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


@pytest.mark.parametrize(
    ("count", "quota", "available"),
    [
        (8, None, 8),
        (8, "max 100000", 8),
        (8, "400000 100000", 4),
        (8, "250000 100000", 2),
        (8, "50000 100000", 1),
        (2, "400000 100000", 2),
    ],
)
def test_cores_are_those_of_the_affinity_or_fewer_by_a_quota(cores, count, quota, available):
    cores(count, quota)
    assert available_cores() == available


@pytest.mark.parametrize(
    ("count", "batch_tokens", "shards"), [(4, 4096, 4), (1, 4096, 1), (64, 4096, 8), (4, 400, 1)]
)
def test_a_cpu_has_a_shard_for_each_core_unless_they_would_be_tiny(
    cores, count, batch_tokens, shards
):
    cores(count)
    assert default_shards(CPU, batch_tokens) == shards


def test_a_gpu_shares_out_a_batch_by_itself(cores):
    cores(64)
    assert default_shards(Device("cuda:0", None), 4096) == 1


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
