"""Exercise 20, convolution: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import Slip, array_of, expect, expect_pair, normal, part
from minitransformer.gradcheck import CheckError
from minitransformer.layers.convolution import convolution

B, T, D, F, K = 2, 9, 4, 5, 3


@part(10)
def check_receptive_field(receptive_field):
    below = "the strides of all layers below multiply, and a layer's own is not among them"
    for layers, hint in (
        ([], "an input sees itself"),
        ([(5, 1, 1)], "one window"),
        ([(3, 1, 1), (3, 2, 1), (3, 4, 1)], "each layer adds (k − 1) δ"),
        ([(3, 1, 2)], "a layer's own stride does not widen its own window"),
        ([(3, 1, 2), (3, 1, 2), (3, 1, 1)], below),
        ([(7, 2, 3), (4, 1, 2), (2, 3, 5)], "dilation and the strides below both count"),
    ):
        expected, apart = 1, 1
        for width, dilation, stride in layers:
            expected += (width - 1) * dilation * apart
            apart *= stride
        receptive_field.expect((layers,), expected, hint)


@part(45)
def check_separable_convolution(forward, backward):
    x, depthwise, pointwise, bias, dy = normal(20, (B, T, D), (K, D), (D, F), F, (B, T, F))

    def as_whole(taps, causal=True):
        kernel = taps[:, :, None] * pointwise  # (k, D, F)
        return convolution(x, kernel, bias, causal=causal)[0]

    expected = as_whole(depthwise)
    mistakes = {
        "the taps are read from the wrong end: the first one is for the earliest position": (
            as_whole(depthwise[::-1])
        ),
        "the window is centred: it must end at t, or y_t sees the future": (
            as_whole(depthwise, causal=False)
        ),
        "the bias is missing": expected - bias,
    }
    taps = np.stack([np.diag(tap) for tap in depthwise])
    dz = dy @ pointwise.T  # (B, T, D)
    not_turned, _ = convolution(dz, taps, causal=True)
    from_other_end = convolution(dz[:, ::-1], taps[::-1], causal=True)[0][:, ::-1]
    padded = np.pad(x, ((0, 0), (K - 1, 0), (0, 0)))
    ddepthwise = np.stack([(padded[:, tap : tap + T] * dz).sum((0, 1)) for tap in range(K)])
    slips = [
        Slip(
            "dx: the kernel is not turned round: what looks back in forward looks ahead in dx",
            dy,
            (not_turned,),
        ),
        Slip(
            "the backward reads the taps from the wrong end: the first one is for the earliest "
            "position, as in forward",
            dy,
            (from_other_end, ddepthwise[::-1]),
        ),
    ]
    inputs = x, depthwise, pointwise, bias
    return expect_pair(forward, backward, inputs, expected, mistakes=mistakes, slips=slips)


@part(45)
def check_convolution_step(convolution_step):
    x, weight, bias = normal(20, (B, T, D), (K, D, F), F)
    for taps, dilation in ((K, 1), (K, 2), (1, 1)):
        kernel = weight[:taps]
        expected, _ = convolution(x, kernel, bias, dilation, causal=True)
        kept = (taps - 1) * dilation
        padded = np.concatenate([np.zeros((B, kept, D)), x], axis=1)  # (B, kept + T, D)
        state = padded[:, :kept]
        form, case = "y and the next state", f"with {taps} taps and dilation {dilation}"
        for t in range(T):
            inputs = x[:, t], state, kernel, bias, dilation
            y, state = convolution_step.y_and_cache(*inputs, form=form)
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
    expect(f"y at step {t}, {case},", y, expected, mistakes=mistakes)


def _check_state(state, expected, t, case):
    what = f"the state after step {t}, {case},"
    given = array_of(state, (len(expected), expected.shape[1] + 1, expected.shape[2]))
    if given is not None:
        raise CheckError(f"{what} holds an input too many: keep (k − 1) · dilation of them")
    hint = "drop the earliest input and put x behind the others"
    if expected.size:
        mistakes = {"the last input comes last": expected[:, ::-1]}
        expect(what, state, expected, hint, mistakes)
    elif array_of(state, expected.shape) is None:
        raise CheckError(f"{what} should have the shape {expected.shape}: one tap needs no past")
