import pytest
import scaling
from _settings import Settings
from scaling import exponent


def test_each_axis_changes_one_thing():
    axes = {"batch_tokens": (64, 128), "length": (8, 16), "layers": (1, 2), "d_model": (64, 128)}
    point = {"batch_tokens": 64, "length": 8, "d_model": 64, "layers": 1}
    result = scaling.measure(Settings(), 1, axes, pieces=40, point=point)
    gflop = {axis: [row["gflop"] for row in result["axes"][axis]["points"]] for axis in axes}
    assert {points[0] for points in gflop.values()} == {gflop["layers"][0]}
    assert gflop["batch_tokens"][1] == 2 * gflop["batch_tokens"][0]
    assert 1 < gflop["length"][1] / gflop["length"][0] < 1.2  # attention alone
    assert 1.8 < gflop["layers"][1] / gflop["layers"][0] < 2  # all but the logits
    assert 3.5 < gflop["d_model"][1] / gflop["d_model"][0] < 4
    assert all(row["seconds"] > 0 for found in result["axes"].values() for row in found["points"])
    table = scaling.table(result | {"cpu": "a processor"})
    assert all(meaning in table for meaning in scaling.MEANINGS.values())


def test_a_batch_has_the_tokens_and_the_length_of_its_point():
    point = {"batch_tokens": 256, "length": 16, "d_model": 64, "layers": 1}
    (batch,) = scaling.workload(point, 40).batches
    assert batch.source.shape == batch.target.shape == batch.labels.shape == (8, 16)
    assert batch.num_tokens == (batch.labels != 0).sum() == 128


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_exponent_is_that_of_the_time_in_the_operations(power):
    rows = [{"gflop": x, "seconds": 3 * x**power} for x in (1.0, 2.0, 5.0)]
    assert exponent(rows) == pytest.approx(power)


def test_there_is_no_exponent_where_the_operations_hardly_grow():
    assert exponent([{"gflop": 1.0, "seconds": 1.0}, {"gflop": 1.1, "seconds": 3.0}]) is None
