"""Exercise 15, looking inside: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import array_of, expect, part
from minitransformer.gradcheck import CheckError

B, H, T, S, LAYERS = 2, 3, 5, 4, 3
NUM_HEADS = 5


@part(10)
def check_attention_entropy(attention_entropy):
    rng = np.random.default_rng(15)
    weights = _weights(rng, (B, H, T, S))
    weights[:, :, 0] = [1, 0, 0, 0]
    weights[:, 1, 1] = [0, 0.5, 0, 0.5]
    weights[1, :, 2] = 0  # a query that is allowed nothing
    expected = -np.sum(weights * np.log(np.where(weights == 0, 1, weights)), axis=-1)
    given = attention_entropy.quietly(weights)
    array = array_of(given, expected.shape)
    if array is not None and np.isnan(array).any():
        raise CheckError("attention_entropy is NaN where a weight is 0; α log α goes to 0 there")
    hint = "in nats, by the natural logarithm; a row of zeros has the entropy 0"
    expect("attention_entropy(weights)", given, expected, hint, tolerance=1e-6)


@part(25)
def check_stand_ins(stand_ins):
    rng = np.random.default_rng(15)
    rise = rng.uniform(0.1, 0.5, NUM_HEADS)
    together = np.triu(rng.uniform(-0.3, 0.9, (NUM_HEADS, NUM_HEADS)), 1)
    together += together.T
    asked = []

    def loss_without(heads):
        heads = sorted(set(heads))
        asked.append(tuple(heads))
        of_pairs = together[np.ix_(heads, heads)].sum() / 2
        return float(1.7 + rise[heads].sum() + of_pairs)

    given = stand_ins(loss_without, NUM_HEADS)
    hint = "three rises, each above the loss of the whole model: how often is that left over?"
    expect("stand_ins(loss_without, 5)", given, together, hint)
    repeated = len(asked) - len(set(asked))
    if repeated:
        raise CheckError(
            f"loss_without was asked {repeated} times for heads that it had been asked for before; "
            "without 1 and 2 is without 2 and 1"
        )


@part(45)
def check_attention_rollout(attention_rollout):
    rng = np.random.default_rng(15)
    encoder, cross = _weights(rng, (LAYERS, H, S, S)), _weights(rng, (H, T, S))
    given = attention_rollout(encoder, cross)
    means, last = encoder.mean(axis=1), cross.mean(axis=0)
    first, second, third = (means + np.eye(S)) / 2
    expected = last @ third @ second @ first
    mistakes = {
        "the lowest layer comes first to the words, so it stands right": (
            last @ first @ second @ third
        ),
        "half of each layer is what was there, by the residual connection": (
            last @ means[2] @ means[1] @ means[0]
        ),
        "what was there and what was fetched are shares, and sum to 1": 8 * expected,
        "this is the cross-attention alone: the encoder is missing": last,
    }
    hint = "mean over the heads first, then shares of each layer, then their product"
    expect("attention_rollout(encoder, cross)", given, expected, hint, mistakes)


def _weights(rng, shape):
    """Random rows that sum to 1."""
    weights = rng.uniform(0.05, 1, shape)
    return weights / weights.sum(axis=-1, keepdims=True)
