"""Solutions of lesson 12, learning."""

import numpy as np

BETA_1, BETA_2, EPSILON = 0.9, 0.98, 1e-9


def warmup_for_peak(d_model, peak):
    """1 / √(D w) = peak. For D = 32 and 0.007 it is w = 638: with a warm-up of 80 steps the paper's
    formula would peak at 0.02. For twice its peak, base needs a quarter of its warm-up, 1000 steps.
    """
    return 1 / (d_model * peak**2)


def decayed_adam_update(data, grad, m, v, learning_rate, t, decay):
    """In the gradient, λ θ would be divided by √v̂ like the rest of it: parameters with large
    gradients would hardly decay, and the pull would depend on the scale of the loss.
    """
    m *= BETA_1
    m += (1 - BETA_1) * grad
    v *= BETA_2
    v += (1 - BETA_2) * grad**2
    m_hat, v_hat = m / (1 - BETA_1**t), v / (1 - BETA_2**t)
    data -= learning_rate * (m_hat / (np.sqrt(v_hat) + EPSILON) + decay * data)


def drop_path(h, p, u):
    scale = (u >= p)[:, None, None] / (1 - p)  # (B, 1, 1)
    return h * scale, (scale,)


def drop_path_backward(dy, cache):
    """A sentence whose sublayer was dropped teaches it nothing: the backward could be skipped."""
    (scale,) = cache
    return dy * scale


def factored_second_moment(rows, columns, grad, beta):
    """The mean of k rows_i columns_j over j is k rows_i mean(columns), so k = 1 / mean(columns),
    and that is 1 / mean(rows), both being the mean of the whole matrix.

    It is exact where the mean of g² has rank one: where the size of a gradient is a property of its
    row times one of its column. For the gradient of a linear map, xᵀ dy, this is often nearly so.
    """
    squares = grad**2
    rows = beta * rows + (1 - beta) * squares.mean(axis=1)
    columns = beta * columns + (1 - beta) * squares.mean(axis=0)
    return rows, columns, np.outer(rows, columns) / rows.mean()
