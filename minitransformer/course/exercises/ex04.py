"""Exercise 04, softmax and cross-entropy: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import (
    Slip,
    check_gradients,
    expect,
    expect_pair,
    normal,
    part,
)
from minitransformer.gradcheck.pair import read_only
from minitransformer.layers.softmax import softmax

N, V = 3, 7
LARGE = np.array([[0.0, 9000.0, 8999.0], [-9000.0, -9001.0, 9000.0]])
LARGE_LOG_P = np.array(
    [
        [-9000 - np.log1p(np.exp(-1)), -np.log1p(np.exp(-1)), -1 - np.log1p(np.exp(-1))],
        [-18000.0, -18001.0, 0.0],
    ]
)


@part(10)
def check_perplexity_at_the_floor(perplexity_at_the_floor):
    hint = "it is not exp of the floor: the NLL counts the right word only, of which p is q"
    for arguments in ((50, 0.1), (7, 0.3), (8000, 0.0)):
        vocabulary_size, smoothing = arguments
        expected = 1 / (1 - smoothing + smoothing / vocabulary_size)
        perplexity_at_the_floor.expect(arguments, expected, hint)


@part(25)
def check_log_softmax(forward, backward):
    z = normal(4, (N, V))[0] * 2
    p, _ = softmax(z)
    q = p[:, ::-1]  # another dy whose rows sum to 1
    hint = (
        "dz is right where a row of dy sums to 1, as q does, and nowhere else: at which step of "
        "section 4 was that sum put in?"
    )
    report = expect_pair(forward, backward, (z,), np.log(p), slips=[Slip(hint, q, (q - p,))])
    if report.right:
        y, _ = forward.quietly(LARGE)
        expect("y for scores of ±9000", y, LARGE_LOG_P, HINT)
    return report


@part(25)
def check_log_sum_exp_in_chunks(log_sum_exp_in_chunks):
    sizes = (4, 1, 6, 3)
    small, falling, rising, large = (
        [shift * i + x for i, x in enumerate(normal(seed, *sizes))]
        for seed, shift in ((4, 0), (5, -2), (6, 2), (7, 3000))
    )
    forbidden = [np.full(2, -np.inf), small[0], np.full(3, -np.inf), small[2]]
    for what, chunks, hint in (
        ("small scores", small, ""),
        ("falling scores", falling, "the sum so far is relative to the largest score so far"),
        ("rising scores", rising, "a larger score makes the sum so far smaller, relative to it"),
        ("scores up to 9000", large, "subtract the largest score before exp"),
        ("scores with portions of −∞", forbidden, "−∞ − (−∞) is NaN"),
    ):
        given = log_sum_exp_in_chunks.quietly(map(read_only, chunks))
        scores = np.concatenate(chunks)
        expected = scores.max() + np.log(np.exp(scores - scores.max()).sum())
        expect(f"log_sum_exp_in_chunks of {what}", given, expected, hint, tolerance=1e-12)


@part(45)
def check_distillation(forward, backward):
    z, u = normal(4, (N, V), (N, V))
    for temperature in (1.0, 2.5):
        p, q = (softmax(x / temperature)[0] for x in (z, u))
        loss, _ = forward.y_and_cache(z, u, temperature)
        hint = "is it a mean over rows and a sum over words, with both scores divided by τ?"
        expect(f"loss at τ = {temperature:g}", loss, -(q * np.log(p)).sum() / N, hint)
    report = check_gradients(forward, backward, (z, u, 2.5))
    if report.right:
        loss, _ = forward.quietly(LARGE, -LARGE, 1.0)
        expected = (9000 + 18000 + np.log1p(np.exp(-1)) + 1 / (1 + np.exp(-1))) / 2
        expect("loss for scores of ±9000", loss, expected, HINT)
    return report


HINT = "subtract the largest score of a row first, and take no log of a probability"
