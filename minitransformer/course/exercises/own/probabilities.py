"""How softmax and cross-entropy are checked."""

from functools import wraps

import numpy as np

from minitransformer.cases.case import LABELS, NOTHING_ALLOWED, SOURCE_MASK, B, H, S, T, V
from minitransformer.course.exercises.own.common import also_right, expect_right, expect_y, y_of
from minitransformer.course.exercises.parts import Answer, array_of, expect, likely, normal, part
from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.pair import unheard
from minitransformer.layers.softmax import softmax
from minitransformer.loss.cross_entropy import cross_entropy

LARGE = np.array([[0.0, 9000.0, 8999.0], [-9000.0, -9001.0, -8999.0]])


@part(25, "04")
def check_softmax(forward, backward):
    (x,) = normal(4, (B, H, T, S))
    right, exp = softmax(x)[0], np.exp(x)
    mistakes = {"divide by the sum of the row, not of the whole array": exp / exp.sum()}
    hint, what = "exp(x), divided by its sum along the last axis", "what it returns"
    expect_y(forward, (x,), right, what, hint, mistakes)
    w = y_of(forward, LARGE)
    expected, _ = softmax(LARGE)
    given = array_of(w, LARGE.shape)
    with unheard():
        scaled = None if given is None else given / given.sum(axis=-1, keepdims=True)
    mistakes = {"divide by the sum of the row, with nothing added to it": expected}
    hint = likely(scaled, mistakes, "subtract from each row its own largest score before exp")
    expect(f"{what} for scores of ±9000", w, expected, hint, tolerance=1e-10)

    expected, _ = softmax(x, SOURCE_MASK)
    inverted, _ = softmax(x, ~SOURCE_MASK)
    after = "the weights that are allowed sum to 1: forbid scores before exp, not weights after it"
    mistakes = {
        "True is where attention is allowed, not where it is forbidden": inverted,
        after: right * SOURCE_MASK,
        "a forbidden score is −∞, not 0": softmax(x * SOURCE_MASK)[0],
        "the mask is to be applied": right,
    }
    largest = "what is subtracted from a row is the largest score that is allowed in it"
    nothing = (
        "where nothing is allowed all weights are 0, which needs care: −∞ − (−∞) and 0 / 0 are NaN"
    )
    large = np.where(SOURCE_MASK, x, 9000.0)
    for case, scores, mask, hint, wrong in (
        ("with a mask", x, SOURCE_MASK, "", mistakes),
        ("where forbidden scores are 9000", large, SOURCE_MASK, largest, {}),
        ("with a mask that allows nothing in some rows", x, NOTHING_ALLOWED, nothing, {}),
    ):
        inputs, expected = (scores, mask), softmax(scores, mask)[0]
        expect_y(forward, inputs, expected, f"{what} {case}", hint, wrong)
    hint = "x_k moves all weights of its row: is the sum over the row in it, of dw · w?"
    cases = ((x, mask) for mask in (None, SOURCE_MASK, NOTHING_ALLOWED))
    expect_right(forward, backward, *cases, hints=[hint])
    mask = np.broadcast_to(NOTHING_ALLOWED, x.shape)
    return also_right(forward, backward, (x, mask), (B, H, T))


@part(45, "04")
def check_cross_entropy(forward, backward):
    logits = np.random.default_rng(4).standard_normal((B, T, V))
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    words = np.maximum(LABELS, 1)
    real = LABELS != 0

    def check(what, targets, *options, mistakes=None, nll_mistakes=None, hint="", logits=logits):
        form = "(loss, nll), cache"
        given = y_of(forward, logits, targets, *options, form=form)
        if not isinstance(given, tuple) or len(given) != 2:
            raise CheckError(f"cross_entropy must return {form}; it returned no tuple (loss, nll)")
        expected, _ = cross_entropy(logits, targets, *options)
        for value, wanted, name, wrong in zip(
            given[::-1], expected[::-1], ("nll", "loss"), (nll_mistakes, mistakes), strict=True
        ):
            expect(f"{name} {what}", value, wanted, hint, wrong)

    chosen = np.take_along_axis(log_p, LABELS[..., None], axis=-1)[..., 0]  # (B, T)
    of_words = np.take_along_axis(log_p, words[..., None], axis=-1)[..., 0]
    wrong = {
        "it is a mean over the positions, not their sum": -of_words.sum(),
        "it is the mean over positions, and the sum over words is not divided by V": (
            -of_words.mean() / V
        ),
    }
    check("without padding and smoothing", words, nll_mistakes=wrong)
    wrong = {
        "the mean is over the real targets: divide by how many there are": (
            -(chosen * real).mean()
        ),
        "a position whose target is padding does not count": -chosen.mean(),
    }
    check("with padding", LABELS, nll_mistakes=wrong)
    uniform = -(log_p.mean(axis=-1) * real).sum() / real.sum()
    nll = -(chosen * real).sum() / real.sum()
    others = (V * uniform - nll) / (V - 1)
    losses = {
        "ε is shared by all V words, the right one among them": 0.7 * nll + 0.3 * others,
        "the loss is −Σ q log p, with q the smoothed targets": nll,
        "the right word has 1 − ε + ε / V, and each other word ε / V": nll + 0.3 * uniform,
    }
    smoothed = 0.7 * nll + 0.3 * uniform
    nlls = {"the nll is −log p of the right word, without smoothing": smoothed}
    check("with smoothing=0.3", LABELS, 0.3, mistakes=losses, nll_mistakes=nlls)
    check("with pad_id=5", LABELS, 0.3, 5, hint="padding is the target pad_id, which may not be 0")
    hint = "with num_tokens the sums are divided by it, and not by the count of real targets"
    check("with num_tokens=20", LABELS, 0.3, 0, 20, hint=hint)
    hint = "log p = z − log Σ exp z, after each row's own largest z was subtracted from it"
    check("of logits of ±9000", np.array([0, 1]), 0.3, 2, logits=LARGE, hint=hint)
    hint = "where there is no real target, loss and nll are 0 and not 0 / 0"
    check("of nothing but padding", 0 * LABELS, 0.3, hint=hint)
    return _check_gradients(forward, backward, logits)


def _check_gradients(forward, backward, logits):
    _, cache = forward.y_and_cache(logits, 0 * LABELS)
    dlogits = backward.quietly(np.float64(1.0), cache)
    expect(
        "dlogits of nothing but padding",
        dlogits,
        np.zeros_like(logits),
        "where the target is padding the gradient is 0, and not 0 / 0 where all are",
    )
    hint = (
        "p − q, with the smoothed q, divided as the loss is and 0 where the target is padding; and "
        "all of it times dloss"
    )

    @wraps(forward.function)
    def loss_alone(*inputs):
        (loss, _), cache = forward.function(*inputs)
        return loss, cache

    loss = Answer(forward.name, loss_alone)
    cases = ((logits, LABELS, *options) for options in ((), (0.3,), (0.3, 5), (0.3, 0, 20)))
    expect_right(loss, backward, *cases, hints=[hint])
    return also_right(loss, backward, (logits, LABELS, 0.3), (B, T))
