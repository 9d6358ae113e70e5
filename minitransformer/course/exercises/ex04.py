"""Exercise 04, softmax and cross-entropy: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import Part, array_of, expect, read_only, y_and_cache
from minitransformer.gradcheck import CheckError, check_pair
from minitransformer.gradcheck.pair import call
from minitransformer.loss.cross_entropy import cross_entropy

N, V = 3, 7
LARGE = np.array([[0.0, 9000.0, 8999.0], [-9000.0, -9001.0, 9000.0]])
LARGE_LOG_P = np.array(
    [
        [-9000 - np.log1p(np.exp(-1)), -np.log1p(np.exp(-1)), -1 - np.log1p(np.exp(-1))],
        [-18000.0, -18001.0, 0.0],
    ]
)


def check_perplexity_at_the_floor(perplexity_at_the_floor):
    for vocabulary_size, smoothing in ((50, 0.1), (7, 0.3), (8000, 0.0)):
        q = np.full((1, vocabulary_size), smoothing / vocabulary_size)
        q[0, 3] += 1 - smoothing
        with np.errstate(divide="ignore"):
            scores = np.maximum(np.log(q), -1e4)  # 0 has no logarithm
        (_, nll), _ = cross_entropy(scores, np.array([3]))
        given = call("perplexity_at_the_floor", perplexity_at_the_floor, vocabulary_size, smoothing)
        expect(
            f"perplexity_at_the_floor({vocabulary_size}, {smoothing})",
            given,
            np.exp(nll),
            hint="it is not exp of the floor: the NLL counts the right word only, of which p is q",
        )


def check_log_softmax(forward, backward):
    z = np.random.default_rng(4).standard_normal((N, V)) * 2
    p = np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)
    y, cache = y_and_cache("log_softmax", forward, z)
    expect("y", y, np.log(p))
    report = check_pair(forward, backward, (z,), names=("z",))
    if report.right:
        _check_large("y", lambda: y_and_cache("log_softmax", forward, LARGE)[0], LARGE_LOG_P)
        return report
    q = p[:, ::-1]  # another dy whose rows sum to 1
    dz = array_of(call("log_softmax_backward", backward, read_only(q), cache), z.shape)
    if dz is not None and np.allclose(dz, q - p):
        raise CheckError(
            "dz is right where a row of dy sums to 1, as q does, and nowhere else: at which step "
            "of section 4 was that sum put in?"
        )
    return report


def check_log_sum_exp_in_chunks(log_sum_exp_in_chunks):
    rng = np.random.default_rng(4)

    def check(what, chunks, hint):
        given = _call_quietly(
            "log_sum_exp_in_chunks",
            log_sum_exp_in_chunks,
            (read_only(chunk) for chunk in chunks),
        )
        scores = np.concatenate(chunks)
        peak = scores.max()
        expected = peak + np.log(np.exp(scores - peak).sum())
        expect(f"log_sum_exp_in_chunks of {what}", given, expected, 1e-12, hint)

    sizes = (4, 1, 6, 3)
    small = [rng.standard_normal(n) for n in sizes]
    check("small scores", small, "")
    falling = [5 - 2 * i + rng.standard_normal(n) for i, n in enumerate(sizes)]
    check("falling scores", falling, "the sum so far is relative to the largest score so far")
    rising = [2 * i + rng.standard_normal(n) for i, n in enumerate(sizes)]
    check("rising scores", rising, "a larger score makes the sum so far smaller, relative to it")
    large = [3000.0 * i + rng.standard_normal(n) for i, n in enumerate(sizes)]
    check("scores up to 9000", large, "subtract the largest score before exp")
    forbidden = [np.full(2, -np.inf), small[0], np.full(3, -np.inf), small[2]]
    check("scores with portions of −∞", forbidden, "−∞ − (−∞) is NaN")


def check_distillation(forward, backward):
    rng = np.random.default_rng(4)
    z, u = rng.standard_normal((2, N, V))
    for temperature in (1.0, 2.5):
        p, q = (np.exp(x / temperature) for x in (z, u))
        p, q = (x / x.sum(axis=-1, keepdims=True) for x in (p, q))
        loss, _ = y_and_cache("distillation", forward, z, u, temperature)
        hint = "is it a mean over rows and a sum over words, with both scores divided by τ?"
        expect(f"loss at τ = {temperature:g}", loss, -(q * np.log(p)).sum() / N, hint=hint)
    report = check_pair(forward, backward, (z, u, 2.5), names=("z", "u", "temperature"))
    if report.right:
        _check_large(
            "loss",
            lambda: y_and_cache("distillation", forward, LARGE, -LARGE, 1.0)[0],
            (9000 + 18000 + np.log1p(np.exp(-1)) + 1 / (1 + np.exp(-1))) / 2,
        )
    return report


def _check_large(what, value, expected):
    hint = "subtract the largest score of a row first, and take no log of a probability"
    with np.errstate(all="ignore"):
        given = value()
    expect(f"{what} for scores of ±9000", given, expected, hint=hint)


def _call_quietly(name, function, *arguments):
    with np.errstate(all="ignore"):
        return call(name, function, *arguments)


PARTS = [
    Part(("perplexity_at_the_floor",), 10, check_perplexity_at_the_floor),
    Part(("log_softmax", "log_softmax_backward"), 25, check_log_softmax),
    Part(("log_sum_exp_in_chunks",), 25, check_log_sum_exp_in_chunks),
    Part(("distillation", "distillation_backward"), 45, check_distillation),
]
