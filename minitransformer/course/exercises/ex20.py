"""Exercise 20, convolution: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import Part, array_of, expect, read_only, y_and_cache
from minitransformer.gradcheck import CheckError, check_pair
from minitransformer.gradcheck.pair import call
from minitransformer.layers.convolution import convolution
from minitransformer.layers.sigmoid import sigmoid

B, T, D, F, K = 2, 9, 4, 5, 3


def check_receptive_field(receptive_field):
    for layers, hint in (
        ([], "an input sees itself"),
        ([(5, 1, 1)], "one window"),
        ([(3, 1, 1), (3, 2, 1), (3, 4, 1)], "each layer adds (k − 1) δ"),
        ([(3, 1, 2)], "a layer's own stride does not widen its own window"),
        (
            [(3, 1, 2), (3, 1, 2), (3, 1, 1)],
            "the strides of all layers below multiply, and a layer's own is not among them",
        ),
        ([(7, 2, 3), (4, 1, 2), (2, 3, 5)], "dilation and the strides below both count"),
    ):
        expected, apart = 1, 1
        for width, dilation, stride in layers:
            expected += (width - 1) * dilation * apart
            apart *= stride
        given = call("receptive_field", receptive_field, list(layers))
        expect(f"receptive_field({layers})", given, expected, hint=hint)


def check_highway_gate(forward, backward):
    rng = np.random.default_rng(20)
    x, h = rng.standard_normal((B, T, D)), rng.standard_normal((B, T, 2 * D))
    y, _ = y_and_cache("highway_gate", forward, x, h)
    a, b = h[..., :D], h[..., D:]
    gate, _ = sigmoid(b)
    mistakes = {
        "an open gate, σ(b) near 1, lets the new through and not x": gate * x + (1 - gate) * a,
        "a is the first half of h and b the second": sigmoid(a)[0] * (b - x) + x,
        "as the gate opens for a it shuts for x: 1 − σ(b)": gate * a + x,
    }
    expect("y", y, gate * a + (1 - gate) * x, hint=_named(y, mistakes))
    report = check_pair(forward, backward, (x, h), names=("x", "h"))
    if not report.right:
        dy, (_, dh) = _dy_and_gradients("highway_gate", forward, backward, (x, h))
        without_x = np.concatenate([dy * gate, dy * a * gate * (1 - gate)], axis=-1)
        hint = "dh: b stands in 1 − σ(b) as well, and what that brings, with x, is left out"
        _raise_if_known(dh, {hint: without_x})
    return report


def check_separable_convolution(forward, backward):
    x, depthwise, pointwise, bias = inputs = _separable_inputs()
    y, _ = y_and_cache("separable_convolution", forward, *inputs)

    def as_whole(taps, causal=True):
        kernel = taps[:, :, None] * pointwise  # (k, D, F)
        return convolution(x, kernel, bias, causal=causal)[0]

    mistakes = {
        "the taps are read from the wrong end: the first one is for the earliest position": (
            as_whole(depthwise[::-1])
        ),
        "the window is centred: it must end at t, or y_t sees the future": (
            as_whole(depthwise, causal=False)
        ),
        "the bias is missing": as_whole(depthwise) - bias,
    }
    expect("y", y, as_whole(depthwise), hint=_named(y, mistakes))
    names = ("x", "depthwise", "pointwise", "bias")
    report = check_pair(forward, backward, inputs, names=names)
    if not report.right:
        dy, (dx, *_) = _dy_and_gradients("separable_convolution", forward, backward, inputs)
        dz = np.einsum("btf,df->btd", dy, pointwise)
        taps = [np.diag(tap) for tap in depthwise]
        not_turned, _ = convolution(dz, np.stack(taps), causal=True)
        hint = "dx: the kernel is not turned round: what looks back in forward looks ahead in dx"
        _raise_if_known(dx, {hint: not_turned})
    return report


def check_convolution_step(convolution_step):
    rng = np.random.default_rng(20)
    x, weight, bias = (rng.standard_normal(shape) for shape in ((B, T, D), (K, D, F), F))
    for taps, dilation in ((K, 1), (K, 2), (1, 1)):
        kernel = weight[:taps]
        expected, _ = convolution(x, kernel, bias, dilation, causal=True)
        kept = (taps - 1) * dilation
        padded = np.concatenate([np.zeros((B, kept, D)), x], axis=1)  # (B, kept + T, D)
        state = padded[:, :kept]
        case = f"with {taps} taps and dilation {dilation}"
        for t in range(T):
            result = y_and_cache(
                "convolution_step",
                convolution_step,
                x[:, t],
                state,
                read_only(kernel),
                read_only(bias),
                dilation,
                form="y and the next state",
            )
            y, state = result
            _check_step(y, expected[:, t], padded[:, t : t + kept + 1], kernel, bias, t, case)
            _check_state(state, padded[:, t + 1 : t + 1 + kept], t, case)


def _check_step(y, expected, inputs, kernel, bias, t, case):
    taps = len(kernel)

    def made_of(places, kernel):
        return sum(inputs[:, place] @ tap for place, tap in zip(places, kernel, strict=True)) + bias

    dilation = (inputs.shape[1] - 1) // max(taps - 1, 1)
    places = [tap * dilation for tap in range(taps)]
    mistakes = {
        "the taps are read from the wrong end: the first one is for the earliest position": (
            made_of(places, kernel[::-1])
        ),
        "the window must end at x itself": made_of([max(p - 1, 0) for p in places], kernel),
        "the taps stand dilation positions apart": (
            made_of(range(inputs.shape[1] - taps, inputs.shape[1]), kernel)
        ),
        "the bias is missing": expected - bias,
    }
    expect(f"y at step {t}, {case},", y, expected, hint=_named(y, mistakes))


def _check_state(state, expected, t, case):
    what = f"the state after step {t}, {case},"
    given = array_of(state, (len(expected), expected.shape[1] + 1, expected.shape[2]))
    if given is not None:
        raise CheckError(f"{what} holds an input too many: keep (k − 1) · dilation of them")
    mistakes = {"the last input comes last": expected[:, ::-1]}
    hint = _named(state, mistakes) or "drop the earliest input and put x behind the others"
    if expected.size:
        expect(what, state, expected, hint=hint)
    elif array_of(state, expected.shape) is None:
        raise CheckError(f"{what} should have the shape {expected.shape}: one tap needs no past")


def _dy_and_gradients(name, forward, backward, inputs):
    """A random dy, and what a backward that check_pair could run makes of it."""
    y, cache = y_and_cache(name, forward, *inputs)
    dy = np.random.default_rng(21).standard_normal(np.shape(y))
    gradients = call(f"{name}_backward", backward, read_only(dy), cache)
    gradients = gradients if isinstance(gradients, tuple | list) else [gradients]
    return dy, [*gradients, *[None] * (len(inputs) - len(gradients))]


def _raise_if_known(gradient, mistakes):
    if hint := _named(gradient, mistakes):
        raise CheckError(hint)


def _named(given, mistakes):
    """The hint whose wrong answer was given, or nothing."""
    for hint, wrong in mistakes.items():
        array = array_of(given, wrong.shape)
        if array is not None and np.allclose(array, wrong, rtol=1e-9):
            return hint
    return ""


def _separable_inputs():
    rng = np.random.default_rng(20)
    return tuple(rng.standard_normal(shape) for shape in ((B, T, D), (K, D), (D, F), F))


PARTS = [
    Part(("receptive_field",), 10, check_receptive_field),
    Part(("highway_gate", "highway_gate_backward"), 25, check_highway_gate),
    Part(
        ("separable_convolution", "separable_convolution_backward"), 45, check_separable_convolution
    ),
    Part(("convolution_step",), 45, check_convolution_step),
]
