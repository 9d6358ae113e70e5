"""What the checks of the learner's own Transformer share."""

import math
from functools import wraps

import numpy as np

from minitransformer.course.exercises.parts import Answer, check_gradients, expect, in_words, likely
from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.pair import argument_names, arrays_in, unheard

SEED = 17  # of the generators for dropout
P = 0.4  # of dropout
FAR = 1e5  # from 0, where μ² and the mean of x² are alike but for their last digits
FAR_OFF = "y of an x that is far from 0"
CANCELLED = "take the mean off before you square: mean(x²) − μ² loses its digits where μ is large"


def generator():
    """The same random numbers each time, as a gradient check needs them."""
    return np.random.default_rng(SEED)


def with_dropout(answer):
    """An Answer, a forward, with dropout, the same each time."""
    forward = answer.function

    @wraps(forward)
    def seeded(*inputs):
        return forward(*inputs, P, generator())

    return Answer(answer.name, seeded)


def y_of(forward, *inputs, **options):
    """What ``Answer.y_and_cache`` returns, y alone; warnings are not heard, y is compared."""
    with unheard():
        return forward.y_and_cache(*inputs, **options)[0]


def expect_y(forward, inputs, expected, what="y", hint="", mistakes=None):
    """Expect y of a forward, see :func:`expect`; warnings are not heard."""
    expect(what, y_of(forward, *inputs), expected, hint, mistakes)


def gradients_of(backward, dy, cache, names):
    """What a backward returns: a gradient for each of ``names``.

    Raises:
        CheckError: the backward fails, or returns something else.
    """
    with unheard():
        return backward.several(len(names), ", ".join(names), dy, cache)


def dx_of(forward, backward, inputs, dy):
    """The first gradient that a backward returns; None where there is none."""
    with unheard():
        _, cache = forward.y_and_cache(*inputs)
        return next(iter(backward.gradients(dy, cache)), None)


def expect_any_axes(forward, backward, inputs, lead):
    """Raise a CheckError unless a pair does the same where its rows lie along one axis, or more.

    Args:
        forward, backward: a pair that is right for these inputs.
        inputs: those arrays whose first axes are ``lead`` hold rows, and the first one does.
        lead: the axes in front of those of a row.
    """
    names = argument_names(forward.function, len(inputs))

    def along(axes, array):
        if np.shape(array)[: len(lead)] != lead:
            return array
        return np.reshape(array, (*axes, *np.shape(array)[len(lead) :]))

    dy, expected = None, {}
    for axes in (lead, (math.prod(lead),), (lead[0], 1, *lead[1:])):
        x, *others = (along(axes, value) for value in inputs)
        what = f"with {names[0]} of shape {x.shape}"
        with unheard():
            y, cache = forward.called(what).y_and_cache(x, *others)
            if dy is None:
                dy = np.random.default_rng(21).standard_normal(np.shape(y))
            else:
                expect(f"{what} y", y, along(axes, expected["y"]))
            given = backward.called(what).gradients(along(axes, dy), cache)
        found = {f"d{of}": gradient for of, gradient in zip(names, given, strict=False)}
        expected = expected or {"y": y, **found}
        for of, gradient in found.items():
            if expected[of] is not None:
                expect(f"{what} {of}", gradient, along(axes, expected[of]))


def float64_note(forward, backward, inputs):
    """What to say of a right pair that makes float64 of float32; empty if it does not."""
    inputs = [x.astype(np.float32) if is_float64(x) else x for x in inputs]
    with unheard():
        y, cache = forward.called("with float32").y_and_cache(*inputs)
        dy = np.ones(np.shape(y), np.float32)
        gradients = backward.called("with float32").gradients(dy, cache)
    for function, values in ((forward, arrays_in((y, cache))), (backward, gradients)):
        if any(map(is_float64, values)):
            return (
                f"{function.name} makes float64 of float32, which is slower and takes twice the "
                "memory; see lesson 90"
            )
    return ""


def is_float64(value):
    """Whether it is an array of float64, and no single number."""
    return isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim > 0


def also_right(forward, backward, inputs, lead):
    """What there is to say of a right pair: :func:`expect_any_axes`, then :func:`float64_note`."""
    expect_any_axes(forward, backward, inputs, lead)
    return float64_note(forward, backward, inputs)


def expect_gradients(what, given, expected, hints, otherwise):
    """Raise a CheckError unless the gradients that a learner's backward returned are right.

    Args:
        what: what stands after a name in the message.
        given: the gradients by name.
        expected: these by name, those that a backward meets first in front: the message is about
            the first that is wrong.
        hints: by name, where there is one.
        otherwise: the hint for the others.
    """
    so_far = ""
    for name, gradient in expected.items():
        exchanged = {
            f"it is {other}": value
            for other, value in expected.items()
            if other != name and not likely(given[other], {"right": value})
        }
        hint = likely(given[name], exchanged, hints.get(name, otherwise))
        expect(f"{name} {what}".rstrip(), given[name], gradient, hint + so_far)
        so_far = f" (going back from dy, the last right one is {name})"


def expect_right(forward, backward, *cases, hints=(), **options):
    """Raise a CheckError unless the gradients of a pair are right, by ``check_pair``.

    Args:
        cases: inputs for the forward, one after the other until something is wrong.
        hints: what to add where a gradient is wrong, in their order; empty for some.
        options: of ``check_pair``.
    """
    for inputs in cases:
        report = check_gradients(forward, backward, inputs, **options)
        if not report.right:
            both = zip(hints, report.tensors, strict=False)
            said = [hint for hint, tensor in both if hint and not tensor.right]
            raise CheckError("\n".join([in_words(report), *dict.fromkeys(said)]))
