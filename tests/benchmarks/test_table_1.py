"""What Table 1 of the paper says is what is measured, on a small grid."""

import pytest
import table_1


@pytest.fixture
def result(ran):
    return ran("table_1").result


@pytest.mark.parametrize(("layer", "n", "d"), [
    ("self-attention", 2, 1),
    ("recurrent", 1, 2),
    ("convolution", 1, 2),
    ("restricted", 1, 1),
    ("multi-head", 2, 2),
])  # fmt: skip
def test_operations_grow_as_the_paper_says(result, layer, n, d):
    found = result["layers"][layer]
    assert found["n"]["exponents"]["operations"] == pytest.approx(n, abs=0.15)
    assert found["d"]["exponents"]["operations"] == pytest.approx(d, abs=0.15)


def test_memory_of_attention_grows_with_the_square_and_that_of_a_window_does_not(result):
    grows = {name: found["n"]["exponents"]["memory"] for name, found in result["layers"].items()}
    assert grows["self-attention"] > 1.8
    assert grows["restricted"] == pytest.approx(1, abs=0.1)


def test_the_recurrent_layer_alone_waits_for_each_position(result):
    waits = {name: found["chain"]["for each position"] for name, found in result["layers"].items()}
    assert waits.pop("recurrent") == 3  # the product, the sum, the tanh
    assert set(waits.values()) == {0}


def test_paths_are_as_long_as_the_paper_says(result):
    """From one end of 41 positions to the other."""
    assert result["paths"] == {
        "self-attention": 1,
        "multi-head": 1,
        "recurrent": 41,
        "convolution": 40,  # a neighbour a layer
        "restricted": 5,  # 8 positions a layer
        "dilated": 4,  # 1 + 3 + 9 + 27
    }


def test_where_dilations_do_not_meet_the_end_there_is_no_path():
    assert table_1.paths(33)["dilated"] is None  # 1 + 3 + 9 + 27 is beyond, and 13 is not enough


def test_attention_and_recurrence_cost_alike_where_n_is_about_d(result):
    assert 16 < result["crossings"]["32"]["operations"] < 64


def test_a_crossing_lies_where_the_lines_cross():
    assert table_1.crosses([1, 10], [1, 100], [10, 10]) == pytest.approx(10**0.5)
    assert table_1.crosses([1, 10], [1, 2], [10, 10]) is None
