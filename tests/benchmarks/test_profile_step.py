import sys
import threading
import time

import profile_step
import pytest
from _flops import batch_flops
from _our_side import OurSide
from _settings import Settings
from profile_step import WAITING, Looks, kind_of, profile
from tiny_workload import tiny_workload

from minitransformer.layers import attention, embedding, feed_forward
from minitransformer.parallel import alone


@pytest.fixture(scope="module")
def side():
    return OurSide(tiny_workload(count=2), Settings(accelerate=False))


def test_functions_called_in_a_step_are_of_their_kind(monkeypatch, side):
    """Looked at from where they are called, within the step."""
    expected = {
        (attention, "softmax"): profile_step.SCORES,  # the caller is attention itself
        (feed_forward, "relu"): profile_step.BIAS,
        (embedding, "scatter_add"): "embedding",
        (alone, "gradient_norm"): profile_step.GRADIENTS,
    }
    seen = {}
    for place in expected:
        function = getattr(*place)

        def look(*args, place=place, function=function, **kwargs):
            seen.setdefault(place, set()).add(kind_of(sys._getframe(1)))
            return function(*args, **kwargs)

        monkeypatch.setattr(*place, look)
    side.take_steps([0])
    assert seen == {place: {kind} for place, kind in expected.items()}


def projected_loss(x, weight):
    return linear(x)


def linear(x):
    total = kind_of(sys._getframe())
    return total, Right() @ kind_of(sys._getframe())


class Right:
    """Returns what it is multiplied with, so that a look can be on the line of a product."""

    def __matmul__(self, kind):
        return kind

    def __rmatmul__(self, kind):
        return kind


def test_products_are_told_from_other_work_by_their_line_and_within_the_loss_are_of_logits():
    assert linear(1) == (profile_step.BIAS, profile_step.PRODUCTS)
    assert projected_loss(1, 2) == (profile_step.LOSS, profile_step.LOGITS)


def test_each_look_counts_what_each_worker_is_at(monkeypatch):
    """One of two workers is at LayerNorm for three looks and the other at Adam for one."""
    own, looks = threading.get_ident(), Looks(2)
    monkeypatch.setattr(profile_step, "kind_of", lambda frame: frame)
    for frames in ({1: "Adam", 2: "LayerNorm"}, {2: "LayerNorm"}, {1: None, 2: "LayerNorm"}):
        monkeypatch.setattr(sys, "_current_frames", lambda seen=frames: seen | {own: "looking"})
        looks.look()
    assert looks.counts == {"LayerNorm": 3, "Adam": 1, WAITING: 2}


def test_a_waiting_thread_does_nothing():
    event = threading.Event()
    thread = threading.Thread(target=event.wait)
    thread.start()
    time.sleep(0.01)
    frame = sys._current_frames()[thread.ident]
    assert kind_of(frame) is None
    event.set()
    thread.join()


def test_all_shares_make_up_the_step(side):
    found = profile(side, [0, 1] * 40)
    assert found["looks"] > 10
    assert sum(found["shares"].values()) == pytest.approx(1)


def test_the_speed_of_the_products_is_that_of_the_time_they_took():
    shares = {profile_step.PRODUCTS: 0.5, "Adam": 0.25, profile_step.LOGITS: 0.2}
    shares |= {profile_step.HEADS: 0.05}
    result = dict(cpu="a processor", side=dict(name="ours", blas="BLAS", threads="2"))
    result |= dict(config="toy", corpus="text", seconds_per_step=0.4, shares=shares)
    result |= dict(gflop_per_step=90.0, gemm_peak_gflops=400.0)
    *_, time_taken, speed = profile_step.table(result).splitlines()
    assert time_taken == "matrix products: 75.0%, 300.0 ms"
    assert speed == "their speed: 300 GFLOP/s, 75% of the peak, 400"


def test_operations_are_those_of_the_batches(side):
    first, second = (sum(batch_flops(side.config, b).values()) / 1e9 for b in side.batches)
    assert profile(side, [0] * 30)["gflop_per_step"] == pytest.approx(first)
    assert profile(side, [0, 1] * 15)["gflop_per_step"] == pytest.approx((first + second) / 2)


def test_steps_too_short_to_be_seen_are_no_profile(side, monkeypatch):
    monkeypatch.setattr(profile_step, "SECONDS_BETWEEN_LOOKS", 60)
    with pytest.raises(SystemExit, match="take more: --steps"):
        profile(side, [0])
