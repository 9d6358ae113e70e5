"""A training step of each recurrent layer beside the same step of PyTorch's.

    python benchmarks/recurrent.py

The step is forward and backward of one layer over a batch without padding, for x and all weights.
Both sides have the same weights and inputs, in one process, with the same number of threads and the
same allocator, which keeps what is freed. First they show that they agree; then they take turns in
blocks of steps, and who begins changes from block to block.
"""

import _options
import _products
import numpy as np
from _machine import note_on_kernels
from _products import of_map, seconds_of_products
from _turns import beside, in_words, on, parser, require_same, run
from threadpoolctl import threadpool_limits

from minitransformer.commands.arguments import positive
from minitransformer.layers.elman import Elman
from minitransformer.layers.gru import GRU
from minitransformer.layers.lstm import LSTM


class OurLayer:
    """A layer of minitransformer with random weights.

    Args:
        kind: ``Elman``, ``GRU`` or ``LSTM``.
        x, dy: input and the gradient of all states, (B, T, D).
    """

    def __init__(self, kind, x, dy):
        self.layer = kind(x.shape[-1], x.shape[-1], np.random.default_rng(0))
        self.x, self.dy = x, dy

    def step(self):
        """Forward and backward; returns the gradient of x."""
        self.layer.zero_grad()
        (_, *state), cache = self.layer.forward(self.x)
        dx, *_ = self.layer.backward((self.dy, *(None for _ in state)), cache)
        return dx

    def gradients(self):
        """Of x and of all weights, by name; the biases that PyTorch has twice come once."""
        dx = self.step()
        return {"x": dx} | {name: p.grad for name, p in self.layer.named_parameters()}


class TorchLayer:
    """PyTorch's layer with the same weights as ours."""

    def __init__(self, ours):
        import torch

        kinds = {Elman: torch.nn.RNN, GRU: torch.nn.GRU, LSTM: torch.nn.LSTM}
        width = ours.x.shape[-1]
        self.layer = kinds[type(ours.layer)](width, width, batch_first=True)
        self.x = torch.tensor(ours.x, requires_grad=True)
        self.dy = torch.tensor(ours.dy)
        weights = {name: torch.tensor(p.data.T) for name, p in ours.layer.named_parameters()}
        with torch.no_grad():
            self.layer.weight_ih_l0.copy_(weights["w_input"])
            self.layer.weight_hh_l0.copy_(weights["w_hidden"])
            self.layer.bias_ih_l0.copy_(weights.get("b_input", weights.get("bias")))
            self.layer.bias_hh_l0.copy_(weights.get("b_hidden", torch.zeros(1)))

    def step(self):
        """Forward and backward."""
        self.x.grad = None
        self.layer.zero_grad(set_to_none=True)
        y, _ = self.layer(self.x)
        y.backward(self.dy)

    def gradients(self):
        """Under our names."""
        self.step()
        bias = "bias" if self.layer.mode != "GRU" else "b_input"
        found = {
            "x": self.x.grad,
            "w_input": self.layer.weight_ih_l0.grad.T,
            "w_hidden": self.layer.weight_hh_l0.grad.T,
            bias: self.layer.bias_ih_l0.grad,
        }
        if self.layer.mode == "GRU":
            found["b_hidden"] = self.layer.bias_hh_l0.grad
        return {name: gradient.numpy() for name, gradient in found.items()}


def main(arguments=None):
    """Measure, print a table and write the JSON; returns the exit status."""
    made = parser(__doc__.splitlines()[0])
    add = made.add_argument
    add("--batch", type=positive, default=64, help="sequences a batch, B")
    add("--length", type=positive, default=20, help="steps a sequence, T")
    add("--width", type=positive, default=256, help="of inputs and states, D")
    return run("recurrent", made.parse_args(arguments), arguments, measure, table)


def measure(options):
    """All layers of both sides; returns a dict, ready for JSON."""
    sizes = {"batch": options.batch, "length": options.length, "width": options.width}
    kinds = Elman, GRU, LSTM
    layers = [of_layer(kind, threads, options) for threads in options.threads for kind in kinds]
    return {**sizes, "layers": layers}


def of_layer(kind, threads, options):
    """Both sides of a layer with so many threads; returns a dict, ready for JSON.

    Raises:
        SystemExit: the two sides do not compute the same.
    """
    import torch

    shape = options.batch, options.length, options.width
    x, dy = np.random.default_rng(1).standard_normal((2, *shape)).astype(np.float32)
    torch.set_num_threads(threads)
    with threadpool_limits(threads, user_api="blas"):
        ours = OurLayer(kind, x, dy)
        theirs = TorchLayer(ours)
        require_same(kind.__name__, ours.gradients(), theirs.gradients())
        times = beside(ours.step, theirs.step, options.blocks, options.block)
        times["products_seconds"] = seconds_of_products(products(ours.layer, *shape))
    return {"layer": kind.__name__, "threads": threads, **times}


def products(layer, batch, length, width):
    """The products of a layer, for :func:`seconds_of_products`.

    Those with the recurrent weights wait for each other, but for the gradient of these weights.
    """
    wide = layer.w_input.data.shape[1]  # of all gates
    forward, into_state, _ = of_map(batch, width, wide)
    of_all = width, batch * length, wide
    return [*of_map(batch * length, width, wide), *[forward, into_state] * length, of_all]


def table(result):
    """A result as text."""
    lines = [
        on(result),
        f"B={result['batch']}, T={result['length']}, D={result['width']}: milliseconds a step",
        "",
        "layer  threads   ours  PyTorch  ratio",
    ]
    for row in result["layers"]:
        lines.append(
            f"{row['layer']:6} {row['threads']:7} {1e3 * row['seconds']:6.1f} "
            f"{1e3 * row['torch_seconds']:8.1f} {in_words(row)}; products alone: "
            f"{_products.in_words(row)}"
        )
    return "\n".join([*lines, *note_on_kernels(result["environment"])])


if __name__ == "__main__":
    _options.end(main)
