"""A training step of a convolution beside the same step of PyTorch's conv1d.

    python benchmarks/convolution.py

The step is forward and backward of one centred layer, for x, weight and bias, in float32. Each
side has its own layout, ours (B, T, D) and PyTorch's (B, D, T), so that neither moves axes. Both
have the same weights and inputs, in one process, with the same number of threads and the same
allocator, which keeps what is freed. First they show that they agree; then they take turns in
blocks of steps, and who begins changes from block to block.
"""

import _options
import numpy as np
from _machine import note_on_kernels
from _turns import beside, in_words, on, parser, rates, require_same, run
from threadpoolctl import threadpool_limits

from minitransformer.layers.convolution import convolution, convolution_backward

POINTS = ((64, 20), (8, 512))  # sentences a batch and their length: of translation, and long ones
WIDTH, D = 3, 256
NAMES = "x", "weight", "bias"  # of the gradients


class OurStep:
    """Our convolution.

    Args:
        x, weight, bias: as for ``convolution``.
        dy: gradient of its output, (B, T, D).
    """

    def __init__(self, x, weight, bias, dy):
        self.inputs, self.dy = (x, weight, bias), dy

    def step(self):
        """Forward and backward; returns dx, dweight and dbias."""
        _, cache = convolution(*self.inputs)
        return convolution_backward(self.dy, cache)


class TorchStep:
    """PyTorch's with the same numbers, in its layout."""

    def __init__(self, x, weight, bias, dy):
        import torch

        x, weight = x.transpose(0, 2, 1), weight.transpose(2, 1, 0)
        self.inputs = [
            torch.tensor(array.copy(), requires_grad=True) for array in (x, weight, bias)
        ]
        self.dy = torch.tensor(dy.transpose(0, 2, 1).copy())
        self.conv1d = torch.nn.functional.conv1d

    def step(self):
        """Forward and backward; returns dx, dweight and dbias in our layout."""
        for tensor in self.inputs:
            tensor.grad = None
        x, weight, bias = self.inputs
        self.conv1d(x, weight, bias, padding="same").backward(self.dy)
        return (
            x.grad.numpy().transpose(0, 2, 1),
            weight.grad.numpy().transpose(2, 1, 0),
            bias.grad.numpy(),
        )


def main(arguments=None):
    """Measure, print a table and write the JSON; returns the exit status."""
    options = parser(__doc__.splitlines()[0]).parse_args(arguments)
    return run("convolution", options, arguments, measure, table)


def measure(options):
    """Both sides at all points; returns a dict, ready for JSON."""
    points = [
        of_point(batch, length, threads, options.blocks, options.block)
        for threads in options.threads
        for batch, length in POINTS
    ]
    return {"points": points}


def of_point(batch, length, threads, blocks, block):
    """Both sides at one point; returns a dict, ready for JSON.

    Raises:
        SystemExit: the two sides do not compute the same.
    """
    import torch

    rng = np.random.default_rng(0)
    x, dy = rng.standard_normal((2, batch, length, D), dtype=np.float32)
    weight, bias = rng.standard_normal((WIDTH, D, D), dtype=np.float32), np.zeros(D, np.float32)
    torch.set_num_threads(threads)
    with threadpool_limits(threads, user_api="blas"):
        ours, theirs = (side(x, weight, bias, dy) for side in (OurStep, TorchStep))
        gradients = (dict(zip(NAMES, side.step(), strict=True)) for side in (ours, theirs))
        require_same("convolution", *gradients)
        times = beside(ours.step, theirs.step, blocks, block)
    return {
        "batch": batch,
        "length": length,
        "threads": threads,
        "gflop": 3 * 2 * batch * length * WIDTH * D * D / 1e9,
        **times,
    }


def table(result):
    """A result as text."""
    lines = [
        on(result),
        f"width {WIDTH}, {D} features: milliseconds a step, in brackets GFLOP/s",
        "",
        "  B    T  threads           ours        PyTorch  ratio",
    ]
    for row in result["points"]:
        lines.append(
            f"{row['batch']:3} {row['length']:4} {row['threads']:8} {rates(row)} {in_words(row)}"
        )
    return "\n".join([*lines, *note_on_kernels(result["environment"])])


if __name__ == "__main__":
    _options.end(main)
