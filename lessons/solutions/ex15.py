"""Solutions of lesson 15, looking inside."""

import numpy as np


def attention_entropy(weights):
    """α log α goes to 0 with α, and 0 · log 0 is NaN: replace α by 1, whose log is 0."""
    return -(weights * np.log(np.where(weights > 0, weights, 1))).sum(axis=-1)


def stand_ins(loss_without, num_heads):
    """(L_ij − L) − (L_i − L) − (L_j − L) = L_ij − L_i − L_j + L: the whole model comes in once, +.

    It is a second difference, and estimates the mixed second derivative of the loss by two gates,
    as a rise estimates a first one. Where it is negative, the second head was of use only to the
    first.
    """
    whole = loss_without(())
    without = [loss_without((i,)) for i in range(num_heads)]
    result = np.zeros((num_heads, num_heads))
    for i in range(num_heads):
        for j in range(i):
            both = loss_without((i, j))
            result[i, j] = result[j, i] = both - without[i] - without[j] + whole
    return result


def attention_rollout(encoder, cross):
    """After layer 1 there is M₁ x, after layer 2 M₂ (M₁ x): later layers stand left.

    Cross-attention has a residual connection as well, but it hands on the target's side, not the
    memory's. Shares are a model of the flow, no measurement: values, norms and feed-forward
    networks are left out.
    """
    share = np.eye(encoder.shape[-1])  # (S, S)
    for weights in encoder:
        share = (weights.mean(axis=0) + np.eye(len(share))) / 2 @ share
    return cross.mean(axis=0) @ share  # (T, S)
