"""What the twins on NumPy alone promise: bytes for dropout, NaN, chunks, threads, memory."""

import platform
from itertools import chain

import numpy as np
import pytest
from elsewhere import in_a_process
from memory import takes_at_most
from pairs import D, F, P, V, normal

from minitransformer import accelerated
from minitransformer.accelerate import cpu
from minitransformer.cases.case import LABELS
from minitransformer.core.memory import keep_freed_memory
from minitransformer.core.workers import Workers
from minitransformer.layers.attention import multi_head_attention, multi_head_attention_backward
from minitransformer.layers.convolution_2d import convolution_2d, convolution_2d_backward
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.feed_forward import feed_forward, feed_forward_backward
from minitransformer.layers.layer_norm import layer_norm, layer_norm_backward
from minitransformer.layers.pooling import max_pooling, max_pooling_backward
from minitransformer.layers.residual import residual, residual_backward
from minitransformer.loss.projected_loss import projected_loss, projected_loss_backward
from minitransformer.optim.adam import adam_update

X, E = normal((3, 4, D), (V, D))
ROW = normal((D,), (D,))
(KERNEL,) = normal((3, 3, 1, 2))
FEED_FORWARD = normal((D, F), (F,), (F, D), (D,))


# Dropout


class EveryByte:
    """A generator that draws each byte exactly once."""

    def integers(self, high, size, dtype):
        return np.arange(256, dtype=np.uint8).view(dtype)[:size]


@pytest.mark.parametrize(
    ("p", "dropped"), [(0.1, 26), (0.3, 77), (0.5, 128), (0.0019, 0), (0.0020, 1), (0.9999, 255)]
)
def test_an_entry_is_dropped_with_p_rounded_to_256ths_and_its_expected_value_is_kept(p, dropped):
    ones = np.ones((16, 16))
    with accelerated():
        y, cache = dropout(ones, p, EveryByte())
    assert (y == 0).sum() == dropped
    assert y.mean() == pytest.approx(1, rel=1e-15)
    np.testing.assert_array_equal(dropout_backward(ones, cache), y)


@pytest.mark.parametrize(("p", "really"), [(0.1, 26 / 256), (0.3, 77 / 256)])
def test_about_the_asked_share_is_dropped_of_every_column_and_row(p, really):
    ones = np.ones((1000, 999), np.float32)  # no multiple of the eight bytes drawn at once
    with accelerated():
        y, _ = dropout(ones, p, np.random.default_rng(0))
    for axis in (0, 1):
        standard_error = np.sqrt(really * (1 - really) / ones.shape[axis])
        share = (y == 0).mean(axis=axis)
        assert np.abs(share - really).max() < 5 * standard_error
        assert 0.9 < share.std() / standard_error < 1.1  # as many as independent draws vary


def test_each_use_draws_a_mask_of_its_own_and_the_same_state_the_same_again():
    ones = np.ones((20, 30))
    with accelerated():
        first, other, again = (
            [dropout(ones, P, rng)[0] for _ in range(2)]
            for rng in map(np.random.default_rng, (0, 1, 0))
        )
    assert (first[0] != first[1]).any()
    assert (first[0] != other[0]).any()
    np.testing.assert_array_equal(first, again)


# Pooling


def test_of_a_window_with_nan_the_first_nan_has_the_gradient():
    x = np.zeros((1, 5, 6, 1), np.float32)
    x[0, 1, 1:3], x[0, 4, 4] = np.nan, np.nan
    dy = np.arange(1, 10, dtype=np.float32).reshape(1, 3, 3, 1)
    gradients = []
    for awake in (True, False):
        with accelerated(awake):
            _, cache = max_pooling(x, 3, 2, 1)
            gradients.append(max_pooling_backward(dy, cache))
    np.testing.assert_array_equal(*gradients)
    assert gradients[0][0, 1, 1, 0] > 0


# The loss


def test_rows_of_padding_are_not_even_looked_at():
    x = X.copy()
    x[LABELS == 0] = np.nan
    with accelerated():
        (loss, nll), cache = projected_loss(x, E, LABELS, 0.1)
    dx, dweight = projected_loss_backward(1.0, cache)
    assert np.isfinite([loss, nll]).all()
    assert np.isfinite(dweight).all()
    assert (dx[LABELS == 0] == 0).all()
    assert (dx[LABELS != 0] != 0).all()


@pytest.mark.parametrize("kappa", [0.0, 3.0])
def test_the_logits_of_all_rows_are_never_there_at_once(kappa, monkeypatch):
    monkeypatch.setattr(cpu.projected_loss, "CHUNK", 20)
    tokens, vocabulary_size = 400, 500
    x, weight = normal((2 if kappa else 1, tokens, 4), (vocabulary_size, 4))
    targets = np.arange(1, tokens + 1)[None]
    with accelerated(), takes_at_most(x.itemsize * tokens * vocabulary_size / 3):
        projected_loss(x, weight, targets, 0.1, kappa)


# Threads


def test_twins_in_many_threads_give_the_bits_that_they_give_one_after_the_other():
    """So no scratch memory is shared between them."""

    def work(worker):
        x, memory, *weights = normal((8, 60, D), (8, 60, D), *[(D, D)] * 4)
        rng = np.random.default_rng(worker)
        x = x + worker
        data, grad, m, v = np.abs(np.resize(x, (4, 10**5)))
        results = [data, m, v]
        for _ in range(20):
            h, cache = multi_head_attention(x, memory, memory, *weights, 2, None, 0.3, rng)
            results += [h, *multi_head_attention_backward(h, cache)]
            h, cache = layer_norm(h, *ROW)
            results += [h, *layer_norm_backward(x, cache)]
            h, cache = residual(x, h, 0.3, rng)
            results += [h, *residual_backward(x, cache)]
            h, cache = feed_forward(h, *FEED_FORWARD, 0.3, rng)
            results += [h, *feed_forward_backward(x, cache)]
            h, cache = max_pooling(h[..., None], 3, 1, 1)
            results += [h, max_pooling_backward(x[..., None], cache)]
            h, cache = convolution_2d(h, KERNEL, padding=1)
            results += [h, *convolution_2d_backward(h, cache)[:2]]
            h = h[..., 0]
            losses, cache = projected_loss(h, E, np.arange(480).reshape(8, 60) % V, 0.1)
            results += [*losses, *projected_loss_backward(1.0, cache)]
            adam_update(data, grad, m, v, 1e-2, 3, 0.9, 0.98, 1e-9)
        return results

    with accelerated():
        together = Workers(4).map(work, range(4))
        alone = [work(worker) for worker in range(4)]
    for x, y in zip(chain(*together), chain(*alone), strict=True):
        np.testing.assert_array_equal(x, y)


# Memory

FAULTS = """
import resource
import threading

import numpy as np

from minitransformer.core.memory import keep_freed_memory


def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        [np.ones(20 << 20, np.uint8) for _ in range(5)]  # more than a thread gets at a time
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def in_thread():
    result = []
    thread = threading.Thread(target=lambda: result.extend([faults(), faults()]))
    thread.start()
    thread.join()
    return result[1]


before = faults(), in_thread()
assert keep_freed_memory()
faults()
print(*before, faults(), in_thread())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="an affair of glibc")
def test_dropped_arrays_leave_their_memory_for_the_next_ones():
    *before, after, after_in_thread = map(int, in_a_process(FAULTS).split())
    assert min(before) > 1000
    assert after < 20
    assert after_in_thread < 20


def test_without_glibc_memory_is_left_as_it_is(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert not keep_freed_memory()
