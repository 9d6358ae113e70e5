"""That the imitated precisions round as tensor cores do, and round all matrix products."""

import json

import numpy as np
import precision
import pytest
from _settings import Settings
from precision import ROUNDINGS, compare, round_products, to_bits, to_float16, train
from tiny_workload import tiny_workload

from minitransformer import Transformer
from minitransformer.layers.linear import Linear

SETTINGS = Settings(accelerate=False, total_steps=3, warmup_steps=1)


def floats(rng, count=200_000):
    """Random float32 numbers of all magnitudes, all of float16, and what lies between those."""
    anything = rng.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
    halves = np.sort(halves[np.isfinite(halves)])
    ties = halves[:-1] / 2 + halves[1:] / 2
    above, below = (np.nextafter(ties, np.float32(side * np.inf)) for side in (1, -1))
    x = np.concatenate([anything, halves, ties, above, below, np.float32([65519, 65520, 1e9])])
    return x[np.isfinite(x)]


def test_float16_is_that_of_numpy():
    x = floats(np.random.default_rng(0))
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(to_float16(x), expected)


@pytest.mark.parametrize("count", [8, 11, 23])
def test_so_many_bits_are_left(count):
    x = np.random.default_rng(count).standard_normal(10_000, dtype=np.float32)
    rounded = to_bits(x, count)
    mantissas, _ = np.frexp(rounded.astype(float))
    np.testing.assert_array_equal(mantissas * 2**count % 1, 0)
    _, exponents = np.frexp(x.astype(float))
    half_a_step = 2.0 ** (exponents - count - 1)
    assert (np.abs(rounded.astype(float) - x) <= half_a_step).all()
    step = np.float32(2.0 ** (1 - count))
    ties = 1 + step * np.float32([0.5, 1.5, 2.5])
    if count < 23:  # of 24 bits there is one to cut: all that is cut is a tie
        np.testing.assert_array_equal(to_bits(ties, count), 1 + step * np.float32([0, 2, 2]))


def test_bfloat16_is_that_of_pytorch():
    torch = pytest.importorskip("torch")
    x = floats(np.random.default_rng(1))
    expected = torch.from_numpy(x).bfloat16().float().numpy()
    np.testing.assert_array_equal(ROUNDINGS["bfloat16"](x), expected)


def test_products_are_those_of_rounded_entries_and_nothing_else_is_rounded():
    rng = np.random.default_rng(0)
    layer, rounded = Linear(8, 5, rng), Linear(8, 5, np.random.default_rng(0))
    layer.bias.data[...] = rounded.bias.data[...] = rng.standard_normal(5, dtype=np.float32)
    x, dy = (rng.standard_normal((3, n), dtype=np.float32) for n in (8, 5))
    bfloat16 = ROUNDINGS["bfloat16"]
    w, b = bfloat16(layer.weight.data), layer.bias.data
    round_products([rounded], bfloat16)
    kind = type(rounded.weight.data)  # what all that is worked out from a parameter is
    y, cache = rounded.forward(x.view(kind))
    assert type(y) is kind
    dx = rounded.backward(dy.view(kind), cache)
    np.testing.assert_allclose(y, bfloat16(x) @ w + b, rtol=1e-6)
    np.testing.assert_allclose(dx, bfloat16(dy) @ w.T, rtol=1e-6)
    np.testing.assert_allclose(rounded.weight.grad, bfloat16(x).T @ bfloat16(dy), rtol=1e-6)
    np.testing.assert_allclose(rounded.bias.grad, dy.sum(axis=0), rtol=1e-6)


def test_all_products_of_a_step_are_rounded():
    workload = tiny_workload()
    model = Transformer(workload.config)
    calls = []
    round_products([model], lambda x: calls.append(x.shape) or x)
    batch = workload.batches[0]
    _, cache = model.loss(batch.source, batch.target, batch.labels)
    model.loss_backward(1.0, cache)
    # Each of two encoder and two decoder layers: four linear maps and two products of an attention,
    # and two maps of the feed-forward network. All are followed by two products in the backward.
    products = 2 * (6 + 2) + 2 * (6 + 6 + 2) + 1
    assert len(calls) == 2 * 3 * products


def test_precisions_differ_by_what_they_round(monkeypatch):
    workload = tiny_workload()
    exact = np.array(train(workload, SETTINGS, "float32", seed=1))
    monkeypatch.setitem(ROUNDINGS, "exact", lambda x: x)
    np.testing.assert_array_equal(train(workload, SETTINGS, "exact", seed=1), exact)
    distance = {
        name: np.abs(np.array(train(workload, SETTINGS, name, seed=1)) / exact - 1).max()
        for name in ("23 bits", "tf32", "bfloat16")
    }
    assert 0 < distance["23 bits"] < 1e-6 < distance["tf32"] < distance["bfloat16"] < 1e-2


def made_up():
    """Runs of 400 steps whose losses differ by what their name says."""
    fall = 4 + 4 * np.exp(-np.arange(400) / 100)
    late = np.arange(400) >= 360
    curves = {
        ("float32", 1): fall,
        ("float32", 2): fall + 0.02,
        ("tf32", 1): fall + 0.001,
        ("tf32", 2): fall + 0.02 - 0.001,
        ("bfloat16", 1): fall + 0.5 * late,
        ("bfloat16", 2): fall + 0.02 + 0.5 * late,
    }
    return [dict(precision=p, seed=s, losses=c.tolist()) for (p, s), c in curves.items()]


def test_each_precision_is_compared_with_the_same_seed():
    found = compare(made_up())
    assert found["float32"]["shift"] == pytest.approx(0.02)
    assert found["float32"]["distance"] == pytest.approx(0.02)
    assert found["tf32"]["shift"] == pytest.approx(0, abs=1e-9)
    assert found["tf32"]["distance"] == pytest.approx(0.001)
    assert found["bfloat16"]["shift"] == pytest.approx(0.5)
    assert found["bfloat16"]["distance"] == pytest.approx(0.5 * np.sqrt(0.1))
    assert np.subtract(*found["bfloat16"]["last"][::-1]) == pytest.approx(0.02)


def test_the_comparison_is_printed_and_drawn(tmp_path):
    result = dict(config="toy", corpus="text", steps=400, runs=made_up())
    result |= dict(settings={"device": "cpu"})
    text = precision.table(json.loads(json.dumps(result)))
    assert "bfloat16     4.5905    4.6105    +0.5000   0.1581" in text
    assert "seed 2 beside seed 1             +0.0200   0.0200" in text
    precision.plot(result, tmp_path / "differences.png")
    assert (tmp_path / "differences.png").stat().st_size > 5000


def test_the_script_trains_in_every_precision(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(precision, "make_workload", lambda *_, **__: tiny_workload())
    path = tmp_path / "result.json"
    assert precision.main(["--steps", "2", "--threads", "1", "--json", str(path)]) == 0
    result = json.loads(path.read_text())
    trained = [(run["precision"], run["seed"]) for run in result["runs"]]
    assert trained == [(name, seed) for name in ("float32", *ROUNDINGS) for seed in (1, 2)]
    assert all(len(run["losses"]) == 2 for run in result["runs"])
    assert capsys.readouterr().out == precision.table(result) + "\n"
