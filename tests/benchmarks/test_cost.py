"""The model of what many processes cost, on invented machines, of which the truth is known."""

import pytest
from _cost import Link, Step, Traffic, errors, fit, strong_efficiency, traffic, weak_efficiency

LINK = Link(latency=50e-6, bandwidth=2e9)
SIZES = [1000 * 4**i for i in range(9)]


def points(seconds=LINK.seconds):
    sums = [traffic(4, size) for size in SIZES]
    return [(sent, seconds(sent)) for sent in sums]


def test_a_ring_of_four_sends_six_messages_of_a_quarter_each():
    assert traffic(4, 1000) == Traffic(messages=6, bytes=6 * 250)


@pytest.mark.parametrize(("shards", "numbers"), [(1, 2), (2, 3), (5, 6)])
def test_in_order_each_shard_is_sent_and_then_the_sum(shards, numbers):
    assert traffic(4, 1000, shards) == Traffic(numbers * 3, numbers * 750)
    assert traffic(4, 1000, shards, ordered=False) == traffic(4, 1000)


def test_one_process_sends_nothing():
    assert traffic(1, 1000, shards=3) == (0, 0)


def test_the_fit_finds_the_numbers_that_made_the_points():
    found = fit(points())
    assert found.latency == pytest.approx(LINK.latency)
    assert found.bandwidth == pytest.approx(LINK.bandwidth)
    assert errors(found, points()) == pytest.approx([0] * len(SIZES), abs=1e-9)


def test_sizes_that_were_left_out_are_predicted_within_the_noise():
    noisy = [
        (sent, seconds * factor) for (sent, seconds), factor in zip(points(), NOISE, strict=True)
    ]
    assert max(map(abs, errors(fit(noisy[::2]), noisy[1::2]))) < 0.1


NOISE = (1.02, 0.97, 0.99, 1.03, 1.01, 0.98, 0.97, 1.02, 1.0)


def test_the_errors_of_sizes_left_out_show_that_the_model_is_wrong():
    def cached(sent):  # four times as slow where a cache is too small
        return LINK.seconds(sent) * (1 if sent.bytes < 1e6 else 4)

    measured = points(cached)
    assert min(errors(fit(measured[:5]), measured[5:])) < -0.5


def test_small_sums_count_as_much_as_large_ones():
    """An error that is a thousandth of the largest sum, and half of the smallest."""
    (sent, seconds), *others = points()
    found = fit([(sent, 1.5 * seconds), *others])
    assert found.latency > 1.05 * LINK.latency
    assert found.bandwidth == pytest.approx(LINK.bandwidth, rel=0.1)


def test_one_size_alone_tells_no_latency_from_bandwidth():
    with pytest.raises(ValueError, match="measure several sizes"):
        fit(points()[:1] * 3)


def test_no_link_is_made_of_sums_that_take_less_the_larger_they_are():
    with pytest.raises(ValueError, match="should be positive"):
        fit([(sent, 1 / sent.bytes) for sent, _ in points()])


def test_what_takes_one_link_behind_the_other_takes_the_seconds_of_both():
    other, sent = Link(1e-3, 5e8), Traffic(7, 1e6)
    both = LINK.seconds(sent) + other.seconds(sent)
    assert LINK.behind(other).seconds(sent) == pytest.approx(both)


def test_processes_that_need_no_sum_and_no_update_are_fully_efficient():
    assert weak_efficiency(Step(6.0, 0.0, 0.0), Step(6.0, 0.0, 0.0)) == 1
    assert strong_efficiency(Step(6.0, 0.0, 0.0), Step(2.0, 0.0, 0.0), 3) == 1


def test_the_update_is_nothing_that_processes_share():
    alone, step = Step(6.0, 0.0, 2.0), Step(6.0, 2.0, 2.0)
    assert weak_efficiency(alone, step) == 0.8
    assert strong_efficiency(alone, Step(2.0, 0.0, 2.0), 3) == 8 / 12


@pytest.mark.parametrize(("reduction", "saved"), [(1.0, 1.0), (9.0, 4.0)])
def test_overlap_hides_no_more_than_the_backward_pass(reduction, saved):
    assert Step(6.0, reduction, 1.0).overlap_saves_at_most() == saved
