"""What the checks of the learner's own Transformer share."""

import math

import numpy as np

from minitransformer.course.exercises.parts import (
    expect,
    in_words,
    likely,
    quietly,
    read_only,
    y_and_cache,
)
from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.pair import arrays_in, returned, unheard

SEED = 17  # of the generators for dropout


def generator():
    """The same random numbers each time, as a gradient check needs them."""
    return np.random.default_rng(SEED)


def y_of(name, forward, *inputs, **options):
    """As :func:`y_and_cache`, y alone; warnings are not heard, what comes of them is compared."""
    with unheard():
        return y_and_cache(name, forward, *inputs, **options)[0]


def expect_any_axes(name, forward, backward, inputs, names, lead):
    """Raise a CheckError unless a pair does the same where its rows lie along one axis, or more.

    Args:
        name: of the forward.
        forward, backward: of a pair that is right for these inputs.
        inputs: those arrays whose first axes are ``lead`` hold rows, and the first one does.
        names: of the inputs, up to the last that has a gradient.
        lead: the axes in front of those of a row.
    """

    def along(axes, array):
        if np.shape(array)[: len(lead)] != lead:
            return array
        return np.reshape(array, (*axes, *np.shape(array)[len(lead) :]))

    dy, expected = None, {}
    for axes in (lead, (math.prod(lead),), (lead[0], 1, *lead[1:])):
        x, *others = (along(axes, value) for value in inputs)
        what = f"with {names[0]} of shape {x.shape}"
        with unheard():
            y, cache = y_and_cache(f"{name} {what}", forward, x, *others)
        if dy is None:
            dy = np.random.default_rng(21).standard_normal(np.shape(y))
        else:
            expect(f"{what} y", y, along(axes, expected["y"]))
        given = quietly(f"{name}_backward {what}", backward, read_only(along(axes, dy)), cache)
        given = given if isinstance(given, tuple | list) else (given,)
        found = {f"d{of}": gradient for of, gradient in zip(names, given, strict=False)}
        expected = expected or {"y": y, **found}
        for of, gradient in found.items():
            if expected[of] is not None:
                expect(f"{what} {of}", gradient, along(axes, expected[of]))


def float64_note(name, forward, backward, inputs):
    """What to say of a right pair that makes float64 of float32; empty if it does not.

    Args:
        name: of the forward.
        inputs: for the forward, float64.
    """
    inputs = [x.astype(np.float32) if is_float64(x) else x for x in inputs]
    with unheard():
        y, cache = y_and_cache(f"{name} with float32", forward, *inputs)
    dy = read_only(np.ones(np.shape(y), np.float32))
    gradients = quietly(f"{name}_backward with float32", backward, dy, cache)
    gradients = gradients if isinstance(gradients, tuple | list) else (gradients,)
    for function, values in ((name, arrays_in((y, cache))), (f"{name}_backward", gradients)):
        if any(map(is_float64, values)):
            return (
                f"{function} makes float64 of float32, which is slower and takes twice the memory; "
                "see lesson 90"
            )
    return ""


def is_float64(value):
    """Whether it is an array of float64, and no single number."""
    return isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim > 0


def gradients_of(name, backward, dy, cache, names):
    """What a learner's backward of that name returns: a gradient for each of ``names``.

    Raises:
        CheckError: the backward fails, or returns something else.
    """
    given = quietly(name, backward, read_only(dy), cache)
    if not isinstance(given, tuple | list) or len(given) != len(names):
        wanted = ", ".join(names)
        raise CheckError(f"{name} must return {wanted}; it returned {returned(given)}")
    return given


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
        expect(f"{name} {what}".rstrip(), given[name], gradient, hint=hint + so_far)
        so_far = f" (going back from dy, the last right one is {name})"


def expect_right(reports, hints=None):
    """Raise a CheckError unless some Reports are right: it says what the first wrong one says.

    Args:
        reports: an iterable; what comes after the first wrong one is not asked for.
        hints: by the name of a gradient, what to add where it is wrong, ``{"dmemory": "..."}``.
    """
    for report in reports:
        if not report.right:
            wrong = {tensor.name for tensor in report.tensors if not tensor.right}
            said = [hint for name, hint in (hints or {}).items() if name in wrong]
            raise CheckError("\n".join([in_words(report), *said]))


def expect_y(name, forward, inputs, expected, what="y", hint="", mistakes=None):
    """Expect y of a learner's forward, see :func:`expect`; warnings are not heard."""
    with unheard():
        y, _ = y_and_cache(name, forward, *inputs)
    expect(what, y, expected, hint=hint, mistakes=mistakes)


def also_right(name, forward, backward, inputs, names, lead):
    """What there is to say of a right pair: :func:`expect_any_axes`, then :func:`float64_note`."""
    expect_any_axes(name, forward, backward, inputs, names, lead)
    return float64_note(name, forward, backward, inputs)
