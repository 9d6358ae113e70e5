"""What batch normalisation alone promises: what it notes, and who has a part in whose output."""

import numpy as np
import pytest

from minitransformer.layers.batch_norm import BatchNorm

RNG = np.random.default_rng(0)
IN_TRAINING = np.random.default_rng(0)  # nothing is drawn from it
ROWS, PICTURES = (7, 4), (3, 5, 6, 4)


def moved(**options):
    """One that has seen some batches, in float64."""
    norm = BatchNorm(4, **options).to(dtype=np.float64)
    for buffer in (norm.mean, norm.variance):
        buffer.data = RNG.uniform(0.5, 1.5, 4)
    return norm


def noted(norm):
    return np.stack([norm.mean.data, norm.variance.data])


def assert_close(x, y):
    np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [ROWS, PICTURES])
def test_in_training_each_channel_has_mean_0_and_variance_1_over_all_rows(shape):
    y, _ = (
        BatchNorm(4, epsilon=0.0)
        .to(dtype=np.float64)
        .forward(3 + 2 * RNG.standard_normal(shape), IN_TRAINING)
    )
    assert_close(y.reshape(-1, 4).mean(axis=0), 0)
    assert_close(y.reshape(-1, 4).var(axis=0), 1)


@pytest.mark.parametrize("shape", [ROWS, PICTURES])
def test_it_notes_a_tenth_of_the_mean_and_of_the_unbiased_variance(shape):
    x, norm = RNG.standard_normal(shape), moved()
    before = noted(norm)
    norm.forward(x, IN_TRAINING)
    rows = x.reshape(-1, 4)
    of_batch = np.stack([rows.mean(axis=0), rows.var(axis=0, ddof=1)])
    assert_close(noted(norm), 0.9 * before + 0.1 * of_batch)


def test_momentum_is_the_part_of_a_batch():
    norm = BatchNorm(4, momentum=1.0).to(dtype=np.float64)
    norm.forward(np.ones((2, 4)), IN_TRAINING)
    assert_close(noted(norm), [[1] * 4, [0] * 4])


def test_at_inference_it_norms_by_what_it_noted_and_notes_nothing():
    norm, x = moved(epsilon=0.5), RNG.standard_normal(PICTURES)
    mean, variance = before = noted(norm)
    y, _ = norm.forward(x)
    assert_close(y, (x - mean) / np.sqrt(variance + 0.5))
    np.testing.assert_array_equal(noted(norm), before)


@pytest.mark.parametrize(("rng", "alone"), [(IN_TRAINING, False), (None, True)])
def test_in_training_rows_have_a_part_in_one_another_and_at_inference_none(rng, alone):
    norm, x = moved(), RNG.standard_normal(ROWS)
    other = x.copy()
    other[3:] += 1
    results = []
    for batch in (x, other):
        y, cache = norm.forward(batch, rng)
        results.append((y[:3], norm.backward(np.eye(7, 4), cache)[3:]))
    (y, dx), (y_of_other, _) = results
    assert np.allclose(y, y_of_other) == alone
    assert (not dx[1:].any()) == alone  # dy is zero there


@pytest.mark.parametrize("count", [0, 1])
def test_a_single_row_is_normed_as_at_inference_and_nothing_is_noted_of_it(count):
    norm, x = moved(), RNG.standard_normal((count, 4))
    before = noted(norm)
    results = []
    for rng in (IN_TRAINING, None):
        y, cache = norm.forward(x, rng)
        results.append((y, norm.backward(np.ones((count, 4)), cache)))
    np.testing.assert_array_equal(*results)
    assert all(x.all() for x in results[0])
    np.testing.assert_array_equal(noted(norm), before)


def test_of_a_single_picture_the_places_are_rows():
    norm, x = moved(), RNG.standard_normal((1, 2, 1, 4))
    before = noted(norm)
    y, _ = norm.forward(x, IN_TRAINING)
    assert_close(y.sum(axis=(0, 1, 2)), 0)
    assert (noted(norm) != before).all()
