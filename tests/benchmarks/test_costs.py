"""What many processes cost, on invented machines of which the truth is known."""

from dataclasses import replace
from operator import attrgetter

import _reductions
import many_machines
import numpy as np
import processes
import pytest
from _cost import Link, Step, Traffic, fit, strong_efficiency, traffic, weak_efficiency
from _flops import step_flops
from many_machines import ASSUMED, predictions

from minitransformer import TransformerConfig

LINK = Link(latency=50e-6, bandwidth=2e9)
POINTS = [(sent, LINK.seconds(sent)) for sent in (traffic(4, 1000 * 4**i) for i in range(9))]


@pytest.mark.parametrize(
    ("shards", "ordered", "messages", "size"),
    [(4, False, 6, 6 * 250), (1, True, 6, 1500), (2, True, 9, 2250), (5, True, 18, 4500)],
)
def test_a_ring_of_four_sends_quarters_and_in_order_each_shard_and_then_the_sum(
    shards, ordered, messages, size
):
    assert traffic(4, 1000, shards, ordered=ordered) == Traffic(messages, size)
    assert traffic(1, 1000, shards, ordered=ordered) == (0, 0)  # one process sends nothing


def test_small_sums_count_as_much_as_large_ones():
    """An error that is a thousandth of the largest sum, and half of the smallest."""
    first, *rest = POINTS
    found = fit([(first[0], 1.5 * first[1]), *rest])
    assert found.latency > 1.05 * LINK.latency
    assert found.bandwidth == pytest.approx(LINK.bandwidth, rel=0.1)


def test_no_link_is_made_of_one_size():
    with pytest.raises(ValueError, match="measure several sizes"):
        fit(POINTS[:1] * 3)


@pytest.mark.parametrize(("alone", "step", "weak", "strong"), [
    (Step(6.0, 0.0, 0.0), Step(2.0, 0.0, 0.0), 1, 1),
    (Step(6.0, 0.0, 2.0), Step(2.0, 0.0, 2.0), 1, 8 / 12),  # nothing shares the update
    (Step(6.0, 0.0, 2.0), Step(2.0, 2.0, 2.0), 0.8, 8 / 18),
])  # fmt: skip
def test_what_the_sum_and_the_update_take_makes_processes_less_efficient(alone, step, weak, strong):
    assert weak_efficiency(alone, replace(step, compute=6.0)) == pytest.approx(weak)
    assert strong_efficiency(alone, step, 3) == pytest.approx(strong)


@pytest.mark.parametrize(("reduction", "saved"), [(1.0, 1.0), (9.0, 4.0)])
def test_overlap_hides_no_more_than_the_backward_pass(reduction, saved):
    assert Step(6.0, reduction, 1.0).overlap_saves_at_most() == saved


# Sums of gradients that were timed

TRUTH = {True: Link(200e-6, 2e9), False: Link(100e-6, 4e9)}


def rows(count=4, slower=1.0):
    """As measured; sums of the largest size take ``slower`` times as long."""
    return [
        {
            "processes": team,
            "shards": shards,
            "ordered_sums": ordered,
            "bytes": size,
            "seconds": TRUTH[ordered].seconds(traffic(team, size, shards, ordered))
            * (slower if size == max(_reductions.SIZES) else 1),
        }
        for team, shards, ordered in _reductions.teams(count)
        for size in _reductions.SIZES
    ]


def test_each_order_has_a_link_of_its_own():
    links = _reductions.fitted(rows())
    for ordered, link in links.items():
        assert link.latency == pytest.approx(TRUTH[ordered].latency)
        assert link.bandwidth == pytest.approx(TRUTH[ordered].bandwidth)
    table = _reductions.table(rows(), links)
    assert table.count("+0%") + table.count("-0%") == 5 * len(_reductions.SIZES)
    assert "ordered: 200 µs a message, 2.00 GB/s" in table


def test_the_largest_size_is_left_out_of_the_fit_and_its_error_and_its_bandwidth_are_told():
    slower = rows(slower=2)
    links = _reductions.fitted(slower)
    assert links[True].bandwidth == pytest.approx(2e9)
    assert "-50%" in _reductions.table(slower, links).splitlines()[-3]
    of_largest = _reductions.largest(slower)[True]
    assert of_largest.bandwidth == pytest.approx(1e9, rel=0.01)
    assert of_largest.latency == pytest.approx(200e-6)


def result(reductions):
    """Of steps of one process and of two, which take as long."""
    steps = []
    for count, update in ((1, 0.1), (2, 0.2)):
        row = dict(processes=count, threads=1, ordered_sums=True, seconds=0.6, waiting=0.0)
        messages, sent = traffic(count, 4e7, 1)
        row |= dict(messages=messages, bytes_sent=sent, bytes_in_theory=sent)
        steps.append(row | dict(update=update, as_fast=1.0))
    facts = dict(cpu="a processor", cores=2, shards=2, model="tiny", parameters=10**7)
    return facts | dict(rows=steps, reductions=reductions)


def test_the_model_of_a_step_is_the_work_of_one_process_the_sum_and_the_update():
    alone, row = result([])["rows"]
    assert processes.modelled(row, alone, TRUTH) == pytest.approx(0.5 + 2 * 200e-6 + 0.02 + 0.2)
    assert f"{600:6d} {720:8d}" in processes.table(result(rows(2)))


def test_the_table_says_so_where_no_model_fits_and_nothing_where_no_sums_were_timed():
    wrong = [row | {"seconds": 1 / row["bytes"]} for row in rows(2)]
    assert "the model fits no sum: the best fit takes" in processes.table(result(wrong))
    assert "model fits" not in processes.table(result([]))


# Predictions for machines that nobody has measured

MEASURED = {
    "cpu": "a processor",
    "threads": 2,
    "links": {
        "ordered": {"latency": 200e-6, "bandwidth": 2e9},
        "MPI's": {"latency": 100e-6, "bandwidth": 4e9},
    },
    "models": {"base": {"parameters": 10**7, "gflop": 268.0, "seconds": 2.0, "update": 0.25}},
}


def predicted(*wanted):
    """The prediction for this hardware, precision and order of sums."""
    setting = attrgetter("setting.name", "setting.precision", "setting.sums")
    return {setting(prediction): prediction for prediction in predictions(MEASURED)}[wanted]


def test_machines_like_the_one_measured_take_its_time_and_that_of_the_network():
    step = predicted("64 machines, 10 Gbit/s", None, "ordered").step
    assert (step.compute, step.update) == (1.75, 0.25)
    bytes_sent = 3 * 4e7 * 63 / 64  # two shards, and the sum
    seconds = 3 * 63 * (200e-6 + 50e-6) + bytes_sent / 2e9 + bytes_sent / 1e9
    assert step.reduction == pytest.approx(seconds)


def test_a_gpu_takes_its_time_for_the_operations():
    step = predicted("8 GPUs", "float32", "either").step
    assert step.compute == pytest.approx(268e9 / (0.4 * 67e12))
    assert step.update == pytest.approx(32e7 / 3.35e12)
    assert step.reduction == pytest.approx(14 * 10e-6 + 2 * 4e7 * 7 / 8 / 370e9)


def test_in_order_eight_times_as_much_crosses_the_network(monkeypatch):
    for name in ("gpu_latency", "nvlink"):  # nothing but the network counts
        monkeypatch.setitem(ASSUMED, name, (1e-30 if "latency" in name else 1e30, 1, ""))
    in_order, in_two_levels = (
        predicted("64 machines of 8 GPUs", "float32", sums).step.reduction
        for sums in ("ordered", "NCCL's")
    )
    assert in_order / in_two_levels == pytest.approx(8)


@pytest.mark.parametrize("name", ASSUMED)
def test_every_assumption_that_is_named_is_used(monkeypatch, name):
    before = [p.step.seconds for p in predictions(MEASURED)]
    number, *rest = ASSUMED[name]
    monkeypatch.setitem(ASSUMED, name, (2 * number, *rest))
    assert [p.step.seconds for p in predictions(MEASURED)] != before
    assert f"{2 * number:g} {rest[-1]}" in many_machines.table(MEASURED)


def test_faster_links_are_worth_something():
    assert all(p.weak_half < p.weak < p.weak_twice < 1 for p in predictions(MEASURED))


def test_the_papers_batch_is_cut_up_and_the_sum_and_the_update_are_not():
    eight = predicted("8 GPUs", "float32", "either")
    work, rest = 50_000 / 4096 * eight.step.compute, eight.step.reduction + eight.step.update
    assert eight.strong == pytest.approx((work + eight.step.update) / (8 * (work / 8 + rest)))
    many = predicted("64 machines of 8 GPUs", "float32", "NCCL's")  # 98 tokens each
    assert many.strong < many.weak / 3


def test_what_is_predicted_is_not_called_measured():
    measured, later = many_machines.table(MEASURED).split("\npredicted: ")
    assert "GPU" not in measured.split("\nassumed")[0]
    assert later.count("base") == len(predictions(MEASURED))


@pytest.mark.parametrize("name", ["toy", "tiny"])
def test_the_step_of_one_process_is_measured(name, ran):
    """Of 256 tokens of two languages, four sentences of 32 in each."""
    row = ran("many_machines").result["models"][name]
    assert row["seconds"] > row["update"] > 0
    config, lengths = TransformerConfig.preset(name, 40), np.full(4, 32)
    assert row["gflop"] == sum(step_flops(config, lengths, lengths).values()) / 1e9
    assert row["parameters"] == config.num_parameters()
