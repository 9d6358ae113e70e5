"""That the imitated precisions round what they say, in all matrix products and nowhere else."""

from dataclasses import replace

import numpy as np
import precision
import pytest
from _settings import Settings
from precision import ROUNDINGS, compare, round_products, to_float16, train
from tiny_workload import tiny_workload

from minitransformer.layers.linear import Linear

SETTINGS = Settings(accelerate=False, total_steps=6, warmup_steps=1)
# Of the tiny workload's forward pass, with two layers a side: four linear maps and two products of
# an attention, two maps of the feed-forward network, and the logits.
PRODUCTS = 2 * (6 + 2) + 2 * (6 + 6 + 2) + 1


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


def test_each_precision_keeps_the_bits_of_its_name():
    x = np.float32([1 + 2**-22, 1 + 2**-10, 1 + 2**-7, 1 + 2**-6, 2**-24, 1e5])
    kept = {name: (rounding(x) == x).tolist() for name, rounding in ROUNDINGS.items()}
    assert kept == {
        "23 bits": [True, True, True, True, True, True],
        "tf32": [False, True, True, True, True, False],
        "bfloat16": [False, False, True, True, True, False],
        "float16": [False, True, True, True, True, False],
    }
    assert ROUNDINGS["23 bits"](np.float32([1 + 2**-23])) == 1
    assert ROUNDINGS["tf32"](np.float32([2**-30])) == 2**-30  # the range of float32
    assert ROUNDINGS["bfloat16"](np.float32([2**-30])) == 2**-30
    assert ROUNDINGS["float16"](np.float32([2**-30])) == 0


@pytest.mark.slow
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


@pytest.mark.parametrize("threads", [1, 2])
def test_precisions_differ_by_what_they_round(monkeypatch, threads):
    """Alike in everything else: rounded to themselves, entries give the losses of float32."""
    workload = tiny_workload()
    settings = replace(SETTINGS, threads=threads)
    exact = np.array(train(workload, settings, "float32", seed=1))
    monkeypatch.setitem(ROUNDINGS, "exact", lambda x: x)
    np.testing.assert_array_equal(train(workload, settings, "exact", seed=1), exact)
    distance = {
        name: np.abs(np.array(train(workload, settings, name, seed=1)) / exact - 1).max()
        for name in ("tf32", "bfloat16")
    }
    assert 0 < distance["tf32"] < distance["bfloat16"] < 1e-2


def test_all_workers_round(monkeypatch):
    """Each has its own replica; the batches are too small to be shared out, unless asked."""
    workload = tiny_workload()
    monkeypatch.setattr(precision.OurSide, "_trainer", two_shards(precision.OurSide._trainer))
    calls = []
    monkeypatch.setitem(ROUNDINGS, "counted", lambda x: calls.append(x.shape) or x)
    train(workload, replace(SETTINGS, threads=2, total_steps=1), "counted", seed=1)
    # Of each product two factors, and of the two products that it has in the backward.
    assert len(calls) == 2 * 2 * 3 * PRODUCTS


def two_shards(make):
    def trainer(side, *args):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("minitransformer.core.workers.default_shards", lambda *_: 2)
            return make(side, *args)

    return trainer


def test_a_training_that_is_lost_has_the_losses_until_then(monkeypatch):
    steps = iter(range(10**6))

    def breaks(x):
        return x if next(steps) < 4 * 2 * 3 * PRODUCTS else np.full_like(x, np.inf)

    monkeypatch.setitem(ROUNDINGS, "breaks", breaks)
    with np.errstate(all="ignore"):
        losses = train(tiny_workload(), SETTINGS, "breaks", seed=1)
    assert np.isfinite(losses).tolist() == [True] * 4 + [False] * 2


def made_up(steps=400):
    """Runs whose losses differ by what their name says, those of TF32 by noise, too."""
    fall = 4 + 4 * np.exp(-np.arange(steps) / 100)
    late, noise = np.arange(steps) >= 360, np.resize([0.1, -0.1], steps)
    curves = {"float32": 0, "tf32": 0.001 + noise, "bfloat16": 0.5 * late}
    return [
        dict(precision=name, seed=seed, losses=(fall + off + 0.02 * (seed - 1)).tolist())
        for name, off in curves.items()
        for seed in (1, 2)
    ]


def test_each_precision_is_compared_with_the_same_seed_and_noise_of_single_steps_is_no_distance():
    found = compare(made_up())
    assert found["another seed"]["shift"] == pytest.approx(0.02)
    assert found["another seed"]["distance"] == pytest.approx(0.02)
    assert found["tf32"]["shift"] == pytest.approx(0.001)
    assert found["tf32"]["distance"] == pytest.approx(0.001)
    assert found["bfloat16"]["shift"] == pytest.approx(0.5)
    assert found["bfloat16"]["distance"] == pytest.approx(0.5 * np.sqrt(0.1))
    assert np.subtract(*found["bfloat16"]["last"][::-1]) == pytest.approx(0.02)
    for steps in (1, 9, 21):
        assert compare(made_up(steps))["another seed"]["shift"] == pytest.approx(0.02)


def test_what_is_drawn_is_the_distance_from_float32():
    result = dict(config="toy", corpus="text", steps=400, runs=made_up())
    (axes,) = precision.plot(result | dict(settings={"device": "cpu"})).axes
    drawn = {line.get_label(): line.get_xydata() for line in axes.get_lines()}
    assert list(drawn) == ["float32, another seed", "tf32", "bfloat16"]
    np.testing.assert_allclose(drawn["tf32"][:, 1], 0.001, rtol=1e-6)
    np.testing.assert_allclose(drawn["tf32"][:2, 0], [10, 30])


@pytest.mark.slow
def test_the_script_trains_the_reference_in_every_precision_and_says_whether_on_a_cpu(ran):
    result = ran("precision").result
    trained = [(run["precision"], run["seed"], len(run["losses"])) for run in result["runs"]]
    assert trained == [(name, seed, 4) for name in ("float32", *ROUNDINGS) for seed in (1, 2)]
    assert result["settings"]["peak_learning_rate"] == 0.01
    assert result["side"]["name"] == "minitransformer, reference"
    assert "imitated on a CPU" in precision.table(result)
    assert "on a GPU" in precision.table(result | dict(settings={"device": "cuda"}))
