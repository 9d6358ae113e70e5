"""Predictions are what the model says, and rest on every assumption that is named."""

import many_machines
import numpy as np
import pytest
from _cost import traffic
from _flops import step_flops
from _settings import Settings
from many_machines import ASSUMED, predictions

from minitransformer import TransformerConfig

RESULT = {
    "cpu": "a processor",
    "threads": 2,
    "links": {
        "ordered": {"latency": 200e-6, "bandwidth": 2e9},
        "MPI's": {"latency": 100e-6, "bandwidth": 4e9},
    },
    "models": {"base": {"parameters": 10**7, "gflop": 268.0, "seconds": 2.0, "update": 0.25}},
}


def predicted():
    """Predictions by hardware, precision and sums."""
    return {(p.setting.name, p.setting.precision, p.setting.sums): p for p in predictions(RESULT)}


def test_machines_like_the_one_measured_take_its_time_and_that_of_the_network():
    step = predicted()["64 machines, 10 Gbit/s", None, "ordered"].step
    assert (step.compute, step.update) == (1.75, 0.25)
    bytes_sent = 3 * 4e7 * 63 / 64  # two shards, and the sum
    assert traffic(64, 4e7, 2) == (3 * 63, bytes_sent)
    seconds = 3 * 63 * (200e-6 + 50e-6) + bytes_sent / 2e9 + bytes_sent / 1e9
    assert step.reduction == pytest.approx(seconds)


def test_a_gpu_takes_its_time_for_the_operations():
    step = predicted()["8 GPUs", "float32", "either"].step
    assert step.compute == pytest.approx(268e9 / (0.4 * 67e12))
    assert step.update == pytest.approx(32e7 / 3.35e12)
    assert step.reduction == pytest.approx(14 * 10e-6 + 2 * 4e7 * 7 / 8 / 370e9)


def test_in_order_eight_times_as_much_crosses_the_network(monkeypatch):
    for name in ("gpu_latency", "nvlink"):  # nothing but the network counts
        monkeypatch.setitem(ASSUMED, name, (1e-30 if "latency" in name else 1e30, 1, ""))
    found = predicted()
    in_order, in_two_levels = (
        found["64 machines of 8 GPUs", "float32", sums].step.reduction
        for sums in ("ordered", "NCCL's")
    )
    assert in_order / in_two_levels == pytest.approx(8)


@pytest.mark.parametrize("name", ASSUMED)
def test_every_assumption_that_is_named_is_used(monkeypatch, name):
    before = [p.step.seconds for p in predictions(RESULT)]
    number, *rest = ASSUMED[name]
    monkeypatch.setitem(ASSUMED, name, (2 * number, *rest))
    assert [p.step.seconds for p in predictions(RESULT)] != before
    assert f"{2 * number:g} {rest[-1]}" in many_machines.table(RESULT)


def test_faster_links_are_worth_something():
    for p in predictions(RESULT):
        assert p.weak_half < p.weak < p.weak_twice < 1


def test_the_papers_batch_is_cut_up_and_the_sum_and_the_update_are_not():
    eight = predicted()["8 GPUs", "float32", "either"]
    work, rest = 50_000 / 4096 * eight.step.compute, eight.step.reduction + eight.step.update
    assert eight.strong == pytest.approx((work + eight.step.update) / (8 * (work / 8 + rest)))


def test_a_batch_that_is_cut_up_is_worth_less_where_the_share_of_each_is_smaller():
    many = predicted()["64 machines of 8 GPUs", "float32", "NCCL's"]  # 98 tokens each
    assert many.strong < many.weak / 3


def test_what_is_predicted_is_not_called_measured():
    measured, predicted = many_machines.table(RESULT).split("\npredicted: ")
    assert "GPU" not in measured.split("\nassumed")[0]
    assert predicted.count("base") == len(predictions(RESULT))


def test_the_step_of_one_process_is_measured():
    """Of 256 tokens of two languages, four sentences of 32 in each."""
    row = many_machines.measure("toy", Settings(threads=1), 1, pieces=40, tokens=256)
    assert row["seconds"] > row["update"] > 0
    config, lengths = TransformerConfig.preset("toy", 40), np.full(4, 32)
    assert row["gflop"] == sum(step_flops(config, lengths, lengths).values()) / 1e9
    assert row["parameters"] == config.num_parameters()
