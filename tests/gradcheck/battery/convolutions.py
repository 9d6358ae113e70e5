"""Convolutions over time (B, T, C) and over images (B, C, height, width), tap by tap."""

import numpy as np

from battery.table import normal, right

PAIRS = []


def conv(x, w, b):
    """Taps w (K, C, F), of which the first meets the earliest step; no padding."""
    taps, steps = len(w), x.shape[1] - len(w) + 1
    y = sum(x[:, k : k + steps] @ w[k] for k in range(taps)) + b
    return y, (x, w)


def conv_backward(dy, cache):
    x, w = cache
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    steps = dy.shape[1]
    for k in range(len(w)):
        dx[:, k : k + steps] += dy @ w[k].T
        dw[k] = np.einsum("btc,btf->cf", x[:, k : k + steps], dy)
    return dx, dw, dy.sum((0, 1))


PAIRS += right("convolution", conv, normal((2, 7, 4), (3, 4, 5), (5,))).with_slips(
    ({"w[k].T": "w[-1 - k].T"}, "tap order", "for w reversed along axis 0"),
    ({"dw[k] =": "dw[-1 - k] ="}, "tap order"),
    ({"+= dy @": "= dy @"}, "overwritten"),
    ({"in range(len(w))": "in range(1, len(w))"}, "tap left out", "`x[:, k : k + steps] @ w[k]`"),
    ({"in range(len(w))": "in range(len(w) - 1)"}, "tap left out",
     "is missing at the last of 3 times"),
    ({"dw[k] = ": "dw[0] += "}, "tap wrong"),
    ({"x[:, k : k + steps], dy": "x[:, :steps], dy"}, "tap wrong",
     "none of them at 0 on axis 0, the first"),
    ({"dy.sum((0, 1))": "dy.sum(0).mean(0)"}, "mean in place of sum"),
    ({"dy @ w[k].T": "dy @ w[0].T"}, "tap wrong"),
)
PAIRS += right("convolution, all 4", conv, normal((4, 6, 4), (3, 4, 4), (4,))).with_slips(
    ({"dy @ w[k].T": "dy @ w[k]"}, "transposed"),
)


def causal_conv(x, w):
    """Tap k sees the step k before; the past of the first is zero."""
    y = x @ w[0]
    for k in range(1, len(w)):
        y[:, k:] += x[:, :-k] @ w[k]
    return y, (x, w)


def causal_conv_backward(dy, cache):
    x, w = cache
    dx, dw = dy @ w[0].T, np.zeros_like(w)
    dw[0] = np.einsum("btc,btf->cf", x, dy)
    for k in range(1, len(w)):
        dx[:, :-k] += dy[:, k:] @ w[k].T
        dw[k] = np.einsum("btc,btf->cf", x[:, :-k], dy[:, k:])
    return dx, dw


PAIRS += right("causal convolution", causal_conv, normal((2, 5, 3), (3, 3, 4))).with_slips(
    ({"dx[:, :-k] += dy[:, k:]": "dx[:, k:] += dy[:, :-k]"}, "time order"),
    ({"x[:, :-k], dy[:, k:]": "x[:, k:], dy[:, :-k]"}, "time order"),
    ({"dy @ w[0].T, np": "0 * x, np"}, "tap left out"),
    ({"dx[:, :-k] += dy[:, k:]": "dx[:, :-1] += dy[:, 1:]"}, "tap wrong"),
)


def dilated_conv(x, w):
    """Causal, tap k sees the step 2k before."""
    padded = np.concatenate([np.zeros_like(x[:, : 2 * len(w) - 2]), x], axis=1)
    length = x.shape[1]
    y = sum(padded[:, 2 * k : 2 * k + length] @ w[-1 - k] for k in range(len(w)))
    return y, (padded, w, length)


def dilated_conv_backward(dy, cache):
    padded, w, length = cache
    dpadded, dw = np.zeros_like(padded), np.zeros_like(w)
    for k in range(len(w)):
        dpadded[:, 2 * k : 2 * k + length] += dy @ w[-1 - k].T
        dw[-1 - k] = np.einsum("btc,btf->cf", padded[:, 2 * k : 2 * k + length], dy)
    return dpadded[:, -length:], dw


PAIRS += right("dilated convolution", dilated_conv, normal((2, 6, 2), (3, 2, 3))).with_slips(
    ({"dpadded[:, -length:]": "dpadded[:, :length]"}, "shifted"),
    ({"dpadded[:, 2 * k : 2 * k": "dpadded[:, 2 + k : 2 + k"}, "dilation ignored"),
)


def depthwise(x, w):
    """One filter (K, C) for each channel, padded so that the length stays."""
    padded = np.pad(x, ((0, 0), (1, 1), (0, 0)))
    length = x.shape[1]
    return sum(padded[:, k : k + length] * w[k] for k in range(3)), (padded, w)


def depthwise_backward(dy, cache):
    padded, w = cache
    length = dy.shape[1]
    dpadded, dw = np.zeros_like(padded), np.zeros_like(w)
    for k in range(3):
        dpadded[:, k : k + length] += dy * w[k]
        dw[k] = (dy * padded[:, k : k + length]).sum((0, 1))
    return dpadded[:, 1:-1], dw


PAIRS += right("depthwise convolution", depthwise, normal((2, 5, 4), (3, 4))).with_slips(
    ({"dpadded[:, 1:-1]": "dpadded[:, :-2]"}, "shifted"),
    ({"+= dy * w[k]": "+= dy * w[2 - k]"}, "tap order", "for w reversed along axis 0"),
    ({".sum((0, 1))": ".sum()"}, "sum over too much"),
    ({"+= dy * w[k]": "+= dy * w.mean(1)[k]"}, "channels mixed"),
)


def conv2d(x, w):
    """Images (B, C, height, width) with filters (F, C, 2, 3); no padding."""
    height, width = x.shape[2] - 1, x.shape[3] - 2
    y = sum(
        np.einsum("bchw,fc->bfhw", x[:, :, i : i + height, j : j + width], w[:, :, i, j])
        for i in range(2)
        for j in range(3)
    )
    return y, (x, w)


def conv2d_backward(dy, cache):
    x, w = cache
    height, width = dy.shape[2:]
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for i in range(2):
        for j in range(3):
            window = (slice(None), slice(None), slice(i, i + height), slice(j, j + width))
            dx[window] += np.einsum("bfhw,fc->bchw", dy, w[:, :, i, j])
            dw[:, :, i, j] = np.einsum("bchw,bfhw->fc", x[window], dy)
    return dx, dw


PAIRS += right("convolution of images", conv2d, normal((2, 3, 4, 5), (2, 3, 2, 3))).with_slips(
    ({"w[:, :, i, j])": "w[:, :, 1 - i, 2 - j])"}, "tap order",
     "it is what it would be for w reversed along its last two axes"),
    ({"dx[window] += ": "dx[window] = "}, "overwritten"),
    ({"dw[:, :, i, j] =": "dw[:, :, 1 - i, j] ="}, "tap order"),
    ({"in range(3)": "in range(2)"}, "tap left out", "all of them at 2 to 4 on axis 3"),
    ({"x[window], dy)": "x[window], dy) / len(x)"}, "factor of the batch",
     "2 times too small: 2 is the batch size"),
    ({'"bchw,bfhw->fc", x[window], dy': '"chw,fhw->fc", x[window][0], dy[0]'}, "one row only"),
)


def strided_conv(x, w):
    """Taps (2, C, F) at every second step."""
    return x[:, ::2] @ w[0] + x[:, 1::2] @ w[1], (x, w)


def strided_conv_backward(dy, cache):
    x, w = cache
    dx = np.empty_like(x)
    dx[:, ::2], dx[:, 1::2] = dy @ w[0].T, dy @ w[1].T
    dw = [np.einsum("btc,btf->cf", x[:, k::2], dy) for k in range(2)]
    return dx, np.stack(dw)


PAIRS += right("strided convolution", strided_conv, normal((3, 6, 2), (2, 2, 4))).with_slips(
    ({"dx[:, ::2], dx[:, 1::2] =": "dx[:, 1::2], dx[:, ::2] ="}, "tap order"),
    ({"dx[:, ::2], dx[:, 1::2] =": "dx[:, :3], dx[:, 3:] ="}, "stride ignored"),
    ({"x[:, k::2]": "x[:, k : k + 3]"}, "stride ignored"),
)


def transposed_conv(x, w):
    """Each step of x gives two of y: taps (2, C, F)."""
    y = np.stack([x @ w[0], x @ w[1]], axis=2)  # (B, T, 2, F)
    return y.reshape(len(x), -1, w.shape[-1]), (x, w)


def transposed_conv_backward(dy, cache):
    x, w = cache
    dy = dy.reshape(len(x), -1, 2, w.shape[-1])
    dx = dy[:, :, 0] @ w[0].T + dy[:, :, 1] @ w[1].T
    return dx, np.einsum("btc,btkf->kcf", x, dy)


PAIRS += right("transposed convolution", transposed_conv, normal((3, 4, 2), (2, 2, 5))).with_slips(
    ({" + dy[:, :, 1] @ w[1].T": ""}, "tap left out"),
    ({"0] @ w[0].T": "0] @ w[1].T", "1] @ w[1].T": "1] @ w[0].T"}, "tap order"),
    ({"-1, 2, w.shape[-1])": "2, -1, w.shape[-1]).swapaxes(1, 2)"}, "order wrong"),
)


def strided_conv2d(x, w, b):
    """Pictures (B, height, width, C), filters (3, 3, C, F) at every second place, zeros around."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    height, width = (x.shape[1] + 1) // 2, (x.shape[2] + 1) // 2
    rows, columns = (np.arange(3)[:, None] + 2 * np.arange(n) for n in (height, width))
    windows = padded[:, rows[:, None, :, None], columns[None, :, None, :]]  # (B, 3, 3, H, W, C)
    return np.einsum("bijhwc,ijcf->bhwf", windows, w) + b, (padded, w)


def strided_conv2d_backward(dy, cache):
    padded, w = cache
    dpadded, dw = np.zeros_like(padded), np.zeros_like(w)
    height, width = dy.shape[1:3]
    for i in range(3):
        for j in range(3):
            seen = (slice(None), slice(i, i + 2 * height - 1, 2), slice(j, j + 2 * width - 1, 2))
            dpadded[seen] += dy @ w[i, j].T
            dw[i, j] = np.tensordot(padded[seen], dy, axes=([0, 1, 2], [0, 1, 2]))
    return dpadded[:, 1:-1, 1:-1], dw, dy.sum(axis=(0, 1, 2))


PAIRS += right("strided convolution of pictures", strided_conv2d,
               normal((2, 5, 7, 3), (3, 3, 3, 4), (4,))).with_slips(
    ({"dy @ w[i, j].T": "dy @ w[j, i].T"}, "tap order"),
    ({"dpadded[seen] += ": "dpadded[seen] = "}, "overwritten"),
    ({"1:-1, 1:-1": ":-2, :-2"}, "shifted"),
    ({"2 * height - 1, 2)": "height)", "2 * width - 1, 2)": "width)"}, "stride ignored"),
    ({"dy.sum(axis=(0, 1, 2))": "dy.mean(axis=(0, 1, 2))"}, "mean in place of sum"),
)


def grouped_conv2d(x, w):
    """Two towers: half of the filters (2, 2, C / 2, F) see half of the channels."""
    c, f = w.shape[2], w.shape[3] // 2
    height, width = x.shape[1] - 1, x.shape[2] - 1
    y = np.zeros((len(x), height, width, 2 * f))
    for g in range(2):
        of_x, of_y = slice(g * c, (g + 1) * c), slice(g * f, (g + 1) * f)
        for i in range(2):
            for j in range(2):
                seen = x[:, i : i + height, j : j + width, of_x]
                y[..., of_y] += seen @ w[i, j, :, of_y]
    return y, (x, w)


def grouped_conv2d_backward(dy, cache):
    x, w = cache
    c, f = w.shape[2], w.shape[3] // 2
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    height, width = dy.shape[1:3]
    for g in range(2):
        of_x, of_y = slice(g * c, (g + 1) * c), slice(g * f, (g + 1) * f)
        for i in range(2):
            for j in range(2):
                place = (slice(None), slice(i, i + height), slice(j, j + width), of_x)
                dx[place] += dy[..., of_y] @ w[i, j, :, of_y].T
                dw[i, j, :, of_y] = np.einsum("bhwc,bhwf->cf", x[place], dy[..., of_y])
    return dx, dw


PAIRS += right("grouped convolution of pictures", grouped_conv2d,
               normal((2, 4, 5, 6), (2, 2, 3, 8))).with_slips(
    ({"x[place], dy[..., of_y])": "x[place], dy[..., ::-1][..., of_y])"}, "channels mixed"),
    ({"dy[..., of_y] @ w[i, j, :, of_y].T": "dy[..., :f] @ w[i, j, :, :f].T"}, "channels mixed"),
)
