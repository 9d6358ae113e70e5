"""The loss from the decoder's output is that of the logits, projected and then taken together."""

import numpy as np
import pytest

from minitransformer import Transformer, cross_entropy, cross_entropy_backward
from minitransformer.cases.case import BATCH, LABELS, SOURCE, TARGET, B, D, HostGenerator, T, V
from minitransformer.cases.models import small_config
from minitransformer.data.text.batches import Batch
from minitransformer.loss.consistency import consistency, consistency_backward
from minitransformer.loss.projected_loss import projected_loss, projected_loss_backward

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2 * B, T, D))  # two passes
WEIGHT = RNG.standard_normal((V, D))
BOTH_LABELS = np.concatenate([LABELS, LABELS])


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("options", [{}, {"smoothing": 0.1}, {"num_tokens": 13}, {"pad_id": 4}])
def test_of_one_pass_it_is_the_cross_entropy_of_the_projected_logits(options):
    x = X[:B]
    losses, cache = projected_loss(x, WEIGHT, LABELS, **options)
    dx, dweight = projected_loss_backward(0.75, cache)

    expected, logits_cache = cross_entropy(x @ WEIGHT.T, LABELS, **options)
    dlogits = cross_entropy_backward(0.75, logits_cache)
    close(losses, expected)
    close(dx, dlogits @ WEIGHT)
    close(dweight, np.einsum("btv,btd->vd", dlogits, x))


@pytest.mark.parametrize("options", [{}, {"smoothing": 0.1}, {"num_tokens": 13}, {"pad_id": 4}])
def test_of_two_passes_it_is_their_mean_and_their_distance(options):
    (loss, nll), cache = projected_loss(X, WEIGHT, LABELS, kappa=2.0, **options)
    dx, dweight = projected_loss_backward(0.75, cache)

    one, other = ((cross_entropy(x @ WEIGHT.T, LABELS, **options)) for x in (X[:B], X[B:]))
    apart = {name: value for name, value in options.items() if name != "smoothing"}
    distance, distance_cache = consistency(X @ WEIGHT.T, LABELS, **apart)
    dlogits = np.concatenate([cross_entropy_backward(0.75 / 2, c) for _, c in (one, other)])
    dlogits += consistency_backward(0.75 * 2.0, distance_cache)
    close(loss, (one[0][0] + other[0][0]) / 2 + 2.0 * distance)
    close(nll, (one[0][1] + other[0][1]) / 2)
    assert distance > 0.1
    close(dx, dlogits @ WEIGHT)
    close(dweight, np.einsum("btv,btd->vd", dlogits, X))


# The loss of a whole model


def test_with_a_consistency_a_model_runs_the_batch_twice():
    model = Transformer(small_config("pre"), dtype=np.float64)
    twice = [np.concatenate([ids, ids]) for ids in (SOURCE, TARGET)]
    logits, cache = model.forward(*twice, HostGenerator(np))
    (cost, nll), loss_cache = cross_entropy(logits, BOTH_LABELS, 0.1)
    distance, distance_cache = consistency(logits, LABELS)
    dlogits = cross_entropy_backward(1.0, loss_cache) + consistency_backward(2.0, distance_cache)
    model.backward(dlogits, cache)
    expected_grad = model.flat.grad.copy()
    assert distance > 1e-4

    model.zero_grad()
    losses, cache = model.loss(BATCH, HostGenerator(np), smoothing=0.1, kappa=2.0)
    model.loss_backward(1.0, cache)
    close(losses, (cost + 2.0 * distance, nll))
    close(model.flat.grad, expected_grad)


@pytest.mark.parametrize("kappa", [0.0, 2.0])
def test_the_loss_of_a_model_takes_lists(kappa):
    model = Transformer(small_config())
    lists = Batch(SOURCE.tolist(), TARGET.tolist(), LABELS.tolist())
    arrays, _ = model.loss(BATCH, kappa=kappa)
    assert model.loss(lists, kappa=kappa)[0] == arrays
