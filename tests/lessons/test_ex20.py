"""Plausible wrong answers to exercise 20 are told what is wrong with them."""

import numpy as np
import pytest
from exercise_files import functions_in, only_wrong, solution_of

SOLUTION = functions_in(solution_of("ex20"))


def view_counting(apart_of):
    """The view of a stack, with another idea of how far apart the inputs of a layer are."""

    def receptive_field(layers):
        strides = [stride for *_, stride in layers]
        reaches = ((width - 1) * dilation for width, dilation, _ in layers)
        return 1 + sum(reach * apart_of(strides, i) for i, reach in enumerate(reaches))

    return receptive_field


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda layers: SOLUTION["receptive_field"](layers) - 1, "an input sees itself"),
        (lambda layers: 1 + sum(width * d for width, d, _ in layers), "one window"),
        (lambda layers: 1 + sum(width - 1 for width, *_ in layers), "each layer adds (k − 1) δ"),
        (view_counting(lambda strides, i: np.prod(strides[: i + 1])), "own stride does not widen"),
        (view_counting(lambda strides, i: 1), "the strides of all layers below multiply"),
        (view_counting(lambda strides, i: [1, *strides][i]), "all layers below multiply"),
    ],
)
def test_a_wrong_view_of_a_stack_is_told_which_layer_adds_what(answer, says):
    assert says in only_wrong("ex20", "receptive_field", receptive_field=answer)


def test_a_dilation_that_strides_replace_is_counted_wrong():
    def without_strides_of_dilated(layers):
        answer = SOLUTION["receptive_field"](layers)
        return answer if all(d == 1 for _, d, _ in layers[:1]) else answer - 1

    said = only_wrong("ex20", "receptive_field", receptive_field=without_strides_of_dilated)
    assert "dilation and the strides below both count" in said


def halves(h):
    a, b = np.split(h, 2, axis=-1)
    return a, b, 1 / (1 + np.exp(-b))


@pytest.mark.parametrize(
    ("gated", "says"),
    [
        (lambda x, a, b, gate: gate * x + (1 - gate) * a, "lets the new through and not x"),
        (lambda x, a, b, gate: x + (b - x) / (1 + np.exp(-a)), "a is the first half of h"),
        (lambda x, a, b, gate: x + gate * a, "it shuts for x"),
    ],
)
def test_a_gate_that_mixes_otherwise_is_told_how_it_should(gated, says):
    def highway_gate(x, h):
        return gated(x, *halves(h)), None

    assert says in only_wrong("ex20", "highway_gate", highway_gate=highway_gate)


def test_a_gate_whose_gradient_forgets_what_it_shuts_out_is_told_so():
    def backward(dy, cache):
        x, a, gate = cache
        return SOLUTION["highway_gate_backward"](dy, (0 * x, a, gate))

    said = only_wrong("ex20", "highway_gate", highway_gate_backward=backward)
    assert "b stands in 1 − σ(b) as well" in said


def test_another_wrong_gradient_of_the_gate_is_told_what_the_gradient_check_finds():
    def backward(dy, cache):
        _, dh = SOLUTION["highway_gate_backward"](dy, cache)
        return dy * cache[2], dh

    said = only_wrong("ex20", "highway_gate", highway_gate_backward=backward)
    assert "WRONG  dx" in said
    assert "1 − σ(b) as well" not in said


def centred(x, depthwise, pointwise, bias):
    longer = np.pad(x, ((0, 0), (0, 1), (0, 0)))
    y, cache = SOLUTION["separable_convolution"](longer, depthwise, pointwise, bias)
    return y[:, 1:], cache


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda x, w, p, b: SOLUTION["separable_convolution"](x, w[::-1], p, b), "wrong end"),
        (lambda x, w, p, b: SOLUTION["separable_convolution"](x, w, p, 0 * b), "bias is missing"),
        (centred, "the window is centred"),
    ],
)
def test_a_separable_convolution_with_other_windows_is_told_which(answer, says):
    said = only_wrong("ex20", "separable_convolution", separable_convolution=answer)
    assert says in said


def test_a_separable_backward_whose_taps_are_not_turned_round_is_diagnosed():
    def backward(dy, cache):
        *_, depthwise, pointwise = cache
        _, *others = SOLUTION["separable_convolution_backward"](dy, cache)
        dz = dy @ pointwise.T
        dx, _ = SOLUTION["separable_convolution"](dz, depthwise, np.eye(dz.shape[-1]), 0)
        return dx, *others

    said = only_wrong("ex20", "separable_convolution", separable_convolution_backward=backward)
    assert "the kernel is not turned round" in said


def test_taps_whose_gradients_are_in_the_wrong_order_are_wrong_alone():
    def backward(dy, cache):
        dx, ddepthwise, dpointwise, dbias = SOLUTION["separable_convolution_backward"](dy, cache)
        return dx, ddepthwise[::-1].copy(), dpointwise, dbias

    said = only_wrong("ex20", "separable_convolution", separable_convolution_backward=backward)
    assert "WRONG  ddepthwise" in said
    assert "WRONG  dx" not in said


def step_with(y_of=None, state_of=None):
    """A step that makes its output, or the next state, of the inputs in another way."""

    def convolution_step(x, state, weight, bias, dilation):
        inputs = np.concatenate([state, x[:, None]], axis=1)
        y, after = SOLUTION["convolution_step"](x, state, weight, bias, dilation)
        y = y_of(inputs, weight, bias, dilation) if y_of else y
        return y, state_of(state, inputs, after) if state_of else after

    return convolution_step


def taps_times(taps, weight):
    return np.einsum("bkd,kdf->bf", taps, weight)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (step_with(lambda i, w, b, d: taps_times(i[:, ::d], w)), "the bias is missing"),
        (step_with(lambda i, w, b, d: taps_times(i[:, ::d], w[::-1]) + b), "from the wrong end"),
        (step_with(lambda i, w, b, d: taps_times(i[:, -len(w) :], w) + b), "positions apart"),
        (step_with(None, lambda state, inputs, after: inputs), "holds an input too many"),
        (step_with(None, lambda state, inputs, after: after[:, ::-1]), "the last input comes last"),
        (step_with(None, lambda state, inputs, after: state), "drop the earliest input"),
        (
            step_with(None, lambda state, inputs, after: after if after.size else inputs),
            "holds an input too many",
        ),
    ],
)
def test_a_step_that_takes_or_keeps_other_inputs_is_told_which(answer, says):
    assert says in only_wrong("ex20", "convolution_step", convolution_step=answer)


def test_a_step_that_writes_to_the_state_it_is_given_is_told_not_to():
    def convolution_step(x, state, weight, bias, dilation):
        y, after = SOLUTION["convolution_step"](x, state, weight, bias, dilation)
        state[:] = after
        return y, state

    said = only_wrong("ex20", "convolution_step", convolution_step=convolution_step)
    assert "must not write to its inputs" in said
