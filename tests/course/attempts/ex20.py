import numpy as np
from exercise_files import functions_in, solution_of

convolution, backward = (
    functions_in(solution_of("ex20"))[f"separable_convolution{which}"]
    for which in ("", "_backward")
)


def taps_not_turned_round(dy, cache):
    *_, depthwise, pointwise = cache
    dz = dy @ pointwise.T
    dx, _ = convolution(dz, depthwise, np.eye(dz.shape[-1]), 0)
    return dx, *backward(dy, cache)[1:]


FROM_THE_END = "the backward reads the taps from the wrong end"

WRONG = r"""
receptive_field
    return seen -> return seen - 1 || an input sees itself
    (width - 1) -> width && * apart -> || one window
    * dilation * apart -> || each layer adds (k − 1) δ
    * apart -> * apart * stride || own stride does not widen
    apart *= -> apart = || all layers below multiply
    return seen -> return seen - sum(d > 1 for _, d, _ in layers[:1]) || strides below both count
separable_convolution
    depthwise[tap] -> depthwise[k - 1 - tap] || wrong end
    + bias -> || bias is missing
    (k - 1, 0) -> (k - 2, 1) || the window is centred
separable_convolution_backward
    taps_not_turned_round || the kernel is not turned round
    ddepthwise[tap] = -> ddepthwise[k - 1 - tap] = || $FROM_THE_END
    dz * depthwise[tap] -> dz * depthwise[k - 1 - tap] || $FROM_THE_END
convolution_step
    + bias -> || the bias is missing
    taps, weight) -> taps, weight[::-1]) || from the wrong end
    ::dilation] -> [max(0, p - 1) for p in range(0, inputs.shape[1], dilation)]] || end at x itself
    ::dilation] -> -len(weight) :] || positions apart
    inputs[:, 1:] -> inputs || holds an input too many
    inputs[:, 1:] -> inputs[:, :0:-1] || the last input comes last
    inputs[:, 1:] -> state || drop the earliest input
    inputs[:, 1:] -> inputs[:, 1:] if state.size else None || one tap needs no past
    inputs[:, 1:] -> inputs[:, 1:] if state.size else inputs || holds an input too many
    return y, inputs[:, 1:] -> state[:] = inputs[:, 1:]\n    return y, state || not write to what
"""
