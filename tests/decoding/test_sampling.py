import numpy as np
import pytest

from minitransformer.core.errors import InputError
from minitransformer.data.text.vocabulary import BOS, EOS, PAD, UNK
from minitransformer.decoding.sampling import sample, sampling_probabilities

LOGITS = np.log([0.1, 0.1, 0.1, 0.05, 0.35, 0.2, 0.1])  # of which the first three are never said


def test_tokens_are_drawn_by_their_probability():
    rng = np.random.default_rng(0)
    drawn = np.bincount([sample(LOGITS, rng) for _ in range(4000)], minlength=7) / 4000
    np.testing.assert_allclose(drawn, np.array([0, 0, 0, 0.05, 0.35, 0.2, 0.1]) / 0.7, atol=0.03)
    assert not drawn[[PAD, UNK, BOS]].any()


def test_a_low_temperature_prefers_the_probable():
    warm, cold = (sampling_probabilities(LOGITS, temperature=t) for t in (1.0, 0.5))
    np.testing.assert_allclose(cold, warm**2 / (warm**2).sum())


@pytest.mark.parametrize("temperature", [0, 1e-320])
def test_without_temperature_the_most_probable_is_taken(temperature):
    p = sampling_probabilities(LOGITS, temperature=temperature)
    assert p.tolist() == [0, 0, 0, 0, 1, 0, 0]


def test_of_the_most_probable_so_many_are_left():
    p = sampling_probabilities(LOGITS, top_k=2)
    np.testing.assert_allclose(p, [0, 0, 0, 0, 0.35 / 0.55, 0.2 / 0.55, 0])


def test_of_equally_probable_ones_those_of_the_smaller_id_are_left():
    p = sampling_probabilities(np.zeros(3000), top_k=2)
    assert np.flatnonzero(p).tolist() == [EOS, EOS + 1]  # those before it are never said


@pytest.mark.parametrize(("top_p", "left"), [(0.3, [4]), (0.51, [4, 5]), (0.8, [4, 5, 6])])
def test_the_fewest_are_left_that_have_so_much_together(top_p, left):
    """0.5, 0.79, 0.93 and 1 are the sums."""
    p = sampling_probabilities(LOGITS, top_p=top_p)
    assert np.flatnonzero(p).tolist() == left
    assert p.sum() == pytest.approx(1)


def test_those_that_have_exactly_so_much_together_are_enough():
    p = sampling_probabilities(np.array([0.0, 0.0, 0.0, 1.0, 1.0]), top_p=0.5)
    assert p.tolist() == [0, 0, 0, 1, 0]


@pytest.mark.parametrize("wrong", [
    dict(temperature=-1),
    dict(temperature=np.nan),
    dict(temperature=np.inf),
    dict(top_k=-1),
    dict(top_k=2.5),
    dict(top_p=0),
    dict(top_p=1.1),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(wrong):
    (name,) = wrong
    with pytest.raises(InputError, match=name):
        sampling_probabilities(LOGITS, **wrong)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_model_that_gives_nan_or_infinity_is_refused(wrong):
    with pytest.raises(FloatingPointError, match="NaN"):
        sample(LOGITS * wrong, np.random.default_rng(0))
