"""What the scripts say of growth, of operations, memory and time, is what grows."""

import import_time
import numpy as np
import pytest
import scaling
from _counting import CountingMachine
from _growth import exponent, peak

from minitransformer.layers.convolution_2d import convolution_2d, convolution_2d_backward
from minitransformer.layers.pooling import max_pooling, max_pooling_backward


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_exponent_is_that_of_the_growth(power):
    assert exponent([1, 2, 5], [3 * n**power for n in (1, 2, 5)]) == pytest.approx(power)
    rows = [{"gflop": x, "seconds": 3 * x**power} for x in (1.0, 2.0, 5.0)]
    assert scaling.exponent(rows) == pytest.approx(power)


def test_there_is_no_exponent_where_the_operations_hardly_grow():
    assert scaling.exponent([{"gflop": x, "seconds": 3 * x} for x in (1.0, 1.1)]) is None


@pytest.mark.parametrize("at_a_time", [1, 3])
def test_the_peak_counts_what_is_there_at_a_time(at_a_time):
    def run():
        for _ in range(3):
            yield [np.zeros(10**6, dtype=np.uint8) for _ in range(at_a_time)]

    assert peak(lambda: list(map(len, run()))) == pytest.approx(at_a_time * 10**6, rel=0.01)


def test_each_axis_of_a_model_changes_one_thing(ran):
    result = ran("scaling").result
    axes = {axis: found["points"] for axis, found in result["axes"].items()}
    gflop = {axis: [row["gflop"] for row in points] for axis, points in axes.items()}
    assert {first for first, _ in gflop.values()} == {gflop["layers"][0]}
    times = {axis: second / first for axis, (first, second) in gflop.items()}
    assert times["batch_tokens"] == 2
    assert 1 < times["length"] < 1.2  # attention alone
    assert 1.8 < times["layers"] < 2  # all but the logits
    assert 3.5 < times["d_model"] < 4
    assert all(row["seconds"] > 0 for points in axes.values() for row in points)


def test_a_batch_has_the_tokens_and_the_length_of_its_point():
    point = {"batch_tokens": 256, "length": 16, "d_model": 64, "layers": 1}
    (batch,) = scaling.workload(point, 40).batches
    assert batch.source.shape == batch.target.shape == batch.labels.shape == (8, 16)
    assert batch.num_tokens == (batch.labels != 0).sum() == 128


def test_the_memory_of_full_attention_grows_faster_than_that_of_restricted_attention(ran):
    result = ran("restricted").result
    assert [point["length"] for point in result["full"]["points"]] == [256, 512, 1024]
    assert result["restricted"]["exponents"]["bytes"] == pytest.approx(1, abs=0.05)
    assert result["full"]["exponents"]["bytes"] == pytest.approx(2, abs=0.1)


def test_each_program_stands_beside_the_import_of_numpy(capsys):
    import_time.main(["--rounds", "1"])
    _, *rows = capsys.readouterr().out.splitlines()
    assert [row[:26].rstrip() for row in rows] == list(import_time.PROGRAMS)
    assert rows[0].count(" 1.00 ×") == 2


@pytest.mark.slow
def test_language_models_of_both_sides_learn_the_same(ran):
    pytest.importorskip("torch")
    result = ran("language_model").result
    ours, theirs = result["losses"]
    assert ours == pytest.approx(theirs, abs=1e-3)
    assert len(ours) == 20
    assert ours[-1] < ours[0]
    assert result["validation_nll"][0] == pytest.approx(result["validation_nll"][1], abs=1e-3)


def operations_of_a_picture(size):
    """What a convolution and pooling take, forward and backward, counted."""
    machine = CountingMachine()
    shapes = (1, size, size, 2), (3, 3, 2, 4), (1, size, size, 4)
    x, weight, dy = (machine.asarray(np.ones(shape)) for shape in shapes)
    y, cache = convolution_2d(x, weight, padding=1)
    convolution_2d_backward(dy, cache)
    _, cache = max_pooling(y, 2)
    max_pooling_backward(dy[:, ::2, ::2], cache)
    return machine.operations


def test_the_work_for_a_picture_grows_with_its_area():
    sizes = [4, 8, 16, 32]
    counts = [operations_of_a_picture(size) for size in sizes]
    assert exponent([size**2 for size in sizes], counts) == pytest.approx(1, abs=0.01)
