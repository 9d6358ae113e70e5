"""Plausible wrong answers to exercise 15 are told what is wrong with them."""

import numpy as np
import pytest
from exercise_files import functions_in, only_wrong, solution_of, verdicts

from minitransformer.course.exercises.parts import RIGHT

SOLUTION = functions_in(solution_of("ex15"))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda a: -(a * np.log(a)).sum(axis=-1), "α log α goes to 0"),
        (lambda a: SOLUTION["attention_entropy"](a) / np.log(2), "natural logarithm"),
        (lambda a: SOLUTION["attention_entropy"](a.swapaxes(2, 3)), "shape (2, 3, 4)"),
    ],
)
def test_a_wrong_entropy_is_told_so(answer, says):
    said = only_wrong("ex15", "attention_entropy", attention_entropy=answer)
    assert says in said


def test_an_entropy_with_a_tiny_number_in_the_logarithm_is_right():
    def answer(weights):
        return -(weights * np.log(weights + 1e-12)).sum(axis=-1)

    assert verdicts("ex15", attention_entropy=answer)["attention_entropy"].status == RIGHT


def interactions(loss_without, num_heads, of_the_whole):
    """stand_ins with ``of_the_whole`` times the loss of the whole model."""
    result = np.zeros((num_heads, num_heads))
    for i, j in np.ndindex(result.shape):
        if i != j:
            result[i, j] = loss_without((i, j)) - loss_without((i,)) - loss_without((j,))
            result[i, j] += of_the_whole * loss_without(())
    return result


@pytest.mark.parametrize("of_the_whole", [0, -1, 2])
def test_a_pair_of_heads_without_the_loss_of_the_whole_model_is_told_so(of_the_whole):
    def answer(loss_without, num_heads):
        return interactions(loss_without, num_heads, of_the_whole)

    assert "how often is that left over" in only_wrong("ex15", "stand_ins", stand_ins=answer)


def test_an_answer_that_asks_again_for_the_same_heads_is_told_so():
    def answer(loss_without, num_heads):
        return interactions(loss_without, num_heads, 1)

    assert "without 2 and 1" in only_wrong("ex15", "stand_ins", stand_ins=answer)


def rolled_out(order=-1, own=0.5, fetched=0.5, through_encoder=True):
    """attention_rollout with something changed; ``order`` 1 multiplies the layers as they come."""

    def answer(encoder, cross):
        share = cross.mean(axis=0)
        for weights in encoder[::order] if through_encoder else []:
            share = share @ (fetched * weights.mean(axis=0) + own * np.eye(len(weights[0])))
        return share

    return answer


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (dict(order=1), "stands right"),
        (dict(own=0.0, fetched=1.0), "by the residual connection"),
        (dict(own=1.0, fetched=1.0), "are shares, and sum to 1"),
        (dict(through_encoder=False), "the encoder is missing"),
        (dict(own=0.1, fetched=0.9), "then their product"),
    ],
)
def test_a_wrong_rollout_is_told_what_is_missing(change, says):
    said = only_wrong("ex15", "attention_rollout", attention_rollout=rolled_out(**change))
    assert says in said


def test_a_rollout_that_ends_at_the_top_of_the_encoder_is_told_its_shape():
    def answer(encoder, cross):
        return rolled_out()(encoder, np.eye(encoder.shape[-1])[None])

    said = only_wrong("ex15", "attention_rollout", attention_rollout=answer)
    assert "shape (4, 4) and should have (5, 4)" in said
