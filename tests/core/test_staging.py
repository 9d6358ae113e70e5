"""Batches arrive whole and in time, however the streams of a GPU happen to get on."""

from threading import Event

import numpy as np
import pytest

from minitransformer.cases.case import V
from minitransformer.cases.models import small_config
from minitransformer.core.backend import CPU, Device, to_host
from minitransformer.core.staging import staged
from minitransformer.data.text.batches import Batch
from minitransformer.models.transformer import Transformer


def unchecked(batch):
    pass


class LateGpu:
    """A namespace whose streams do their work later, each in its order, at anybody's pace.

    Memory that a stream's arrays leave behind is handed out to its next arrays at once, as CuPy's
    pool does, though work that reads it may still be queued.
    """

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.streams = []
        self.cuda = self
        self.main = self.current = self.Stream()

    def Stream(self, non_blocking=False):
        stream = LateStream(self)
        self.streams.append(stream)
        return stream

    def get_current_stream(self):
        return self.current

    def Device(self, index):
        return self.current

    def asarray(self, x, dtype=None):
        memory = self.current.free.pop() if self.current.free else np.full(100, -1)
        x = x.copy()

        def copy():
            memory[: x.size] = x

        self.current.queue.append(copy)
        return LateArray(memory[: x.size], memory, self.current)

    def run_some(self, everything=False):
        """Let streams that are not waiting for an event do some of their work."""
        steps = self.rng.integers(20)
        while everything or steps:
            steps -= 1
            able = [s for s in self.streams if s.can_go_on()]
            if not able:
                return
            able[self.rng.integers(len(able))].queue.pop(0)()


class LateStream:
    """Its queue has pieces of work, and events to wait for."""

    def __init__(self, gpu):
        self.gpu, self.queue, self.free = gpu, [], []

    def can_go_on(self):
        while self.queue and isinstance(self.queue[0], Event) and self.queue[0].is_set():
            self.queue.pop(0)
        return bool(self.queue) and not isinstance(self.queue[0], Event)

    def record(self):
        event = Event()
        self.queue.append(event.set)
        return event

    def wait_event(self, event):
        self.queue.append(event)

    def __enter__(self):
        self.before, self.gpu.current = self.gpu.current, self

    def __exit__(self, *exception):
        self.gpu.current = self.before


class LateArray:
    """A view of memory that goes back to its stream when the last view of it is gone."""

    def __init__(self, view, memory, stream, owner=None):
        self.view, self.owner = view, owner or Owner(memory, stream)

    def __getitem__(self, key):
        return LateArray(self.view[key], None, None, self.owner)

    def reshape(self, shape):
        return LateArray(self.view.reshape(shape), None, None, self.owner)


class Owner:
    def __init__(self, memory, stream):
        self.memory, self.stream = memory, stream

    def __del__(self):
        self.stream.free.append(self.memory)


def batch_of(number):
    source = np.full((2, 3), number)
    target = np.full((2, 4), number + 1)
    return Batch(source, target, target + 1, num_tokens=number)


@pytest.mark.parametrize("seed", range(20))
def test_each_batch_is_there_when_its_work_begins_and_until_it_ends(seed):
    gpu = LateGpu(seed)
    seen = []
    for batch in staged(map(batch_of, range(8)), Device("late", gpu), unchecked):
        views = [x.view for x in (batch.source, batch.target, batch.labels)]
        for _ in range(3):
            gpu.main.queue.append(lambda views=views: seen.append([x.copy() for x in views]))
        seen.append(batch.num_tokens)
        gpu.run_some()
        del batch
    numbers = [x for x in seen if isinstance(x, int)]
    gpu.run_some(everything=True)
    works = [x for x in seen if isinstance(x, list)]
    assert numbers == list(range(8))
    for i, (source, target, labels) in enumerate(works):
        expected = batch_of(i // 3)
        assert np.array_equal(source, expected.source)
        assert np.array_equal(target, expected.target)
        assert np.array_equal(labels, expected.labels)
    assert len(works) == 3 * 8


def test_the_next_batch_goes_up_before_this_one_is_worked_on():
    drawn = []
    batches = (drawn.append(i) or batch_of(i) for i in range(3))
    drawn_then = [len(drawn) for _ in staged(batches, Device("late", LateGpu(0)), unchecked)]
    assert drawn_then == [2, 3, 3]


def test_ids_are_checked_before_they_go_up():
    check = Transformer(small_config()).check
    with pytest.raises(ValueError, match="the size of the vocabulary"):
        list(staged([batch_of(V - 2)], Device("late", LateGpu(0)), check))
    assert len(list(staged([batch_of(V - 3)], Device("late", LateGpu(0)), check))) == 1
    assert list(staged([], Device("late", LateGpu(0)), check)) == []


def test_on_the_cpu_batches_stay_as_they_are():
    batches = [batch_of(1), batch_of(2)]
    assert list(staged(batches, CPU, unchecked)) == batches


def test_staged_batches_hold_the_ids_of_the_batches(device):
    batches = [batch_of(i) for i in range(5)]
    for staged_batch, batch in zip(staged(batches, device, unchecked), batches, strict=True):
        for name in ("source", "target", "labels"):
            assert np.array_equal(to_host(getattr(staged_batch, name)), getattr(batch, name))
