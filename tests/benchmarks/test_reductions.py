"""What is made of sums of gradients that were timed, here by a machine that is invented."""

import _reductions
import processes
import pytest
from _cost import Link, traffic

TRUTH = {True: Link(200e-6, 2e9), False: Link(100e-6, 4e9)}


def rows(count=4, slower=1.0):
    """As measured; sums of the largest size take ``slower`` times as long."""
    return [
        {
            "processes": processes,
            "shards": shards,
            "ordered_sums": ordered,
            "bytes": size,
            "seconds": TRUTH[ordered].seconds(traffic(processes, size, shards, ordered))
            * (slower if size == max(_reductions.SIZES) else 1),
        }
        for processes, shards, ordered in _reductions.teams(count)
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


def test_the_largest_size_is_left_out_of_the_fit_and_its_error_shows():
    links = _reductions.fitted(rows(slower=2))
    assert links[True].bandwidth == pytest.approx(2e9)
    assert "-50%" in _reductions.table(rows(slower=2), links).splitlines()[-3]


def test_the_bandwidth_of_large_sums_is_that_of_the_largest():
    links = _reductions.largest(rows(slower=2))
    assert links[True].bandwidth == pytest.approx(1e9, rel=0.01)
    assert links[True].latency == pytest.approx(200e-6)


def step(processes, ordered, **changes):
    sent = traffic(processes, 4e7, 1, ordered)
    row = dict(processes=processes, threads=1, ordered_sums=ordered, seconds=0.6, waiting=0.0)
    row |= dict(messages=sent.messages, bytes_sent=sent.bytes, bytes_in_theory=sent.bytes)
    return row | dict(update=0.1, as_fast=1.0) | changes


def result(reductions):
    facts = dict(cpu="a processor", cores=2, shards=2, model="tiny", parameters=10**7)
    return facts | dict(rows=[step(1, True), step(2, True, update=0.2)], reductions=reductions)


def test_the_model_of_a_step_is_the_work_of_one_process_the_sum_and_the_update():
    alone, row = result([])["rows"]
    assert processes.modelled(row, alone, TRUTH) == pytest.approx(0.5 + 2 * 200e-6 + 0.02 + 0.2)
    assert f"{600:6d} {720:8d}" in processes.table(result(rows(2)))


def test_the_table_says_so_where_no_model_fits():
    wrong = [row | {"seconds": 1 / row["bytes"]} for row in rows(2)]
    assert "the model fits no sum: the best fit takes" in processes.table(result(wrong))


def test_there_is_a_table_without_sums():
    assert "model fits" not in processes.table(result([]))
