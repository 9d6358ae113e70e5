"""Low-rank adapters in a whole language model (Hu et al. 2022, ``layers/low_rank.py``).

All that the model has learned is frozen, and each of its linear maps gets a correction A B. What a
training stores step by step is A and B alone; whoever uses the run has a model without adapters,
into which they are merged (``runs/checkpoint/arrays.py``).

The paper adapts the maps of attention; here, as is common since, those of the feed-forward networks
have adapters, too. A training holds gradients and the optimizer's vectors of adapters only. Of what
is frozen, the gradients of gains and of the embedding are still worked out, and forgotten: the
layers do not know that nobody wants them.
"""

from minitransformer.layers.linear import Linear
from minitransformer.layers.low_rank import LowRankLinear

# A matrix of the paper's layers or of SwiGLU, and where it is once its map is a module of its own.
ADAPTED = {
    "w_query": "query.weight",
    "w_key": "key.weight",
    "w_value": "value.weight",
    "w_output": "output.weight",
    "w_1": "inner.weight",
    "b_1": "inner.bias",
    "w_2": "outer.weight",
    "b_2": "outer.bias",
    "w_gate": "gate.weight",
    "w_up": "up.weight",
    "w_down": "down.weight",
}


def adapt(model, rank, rng):
    """Freeze a module, and give each :class:`Linear` that is an attribute in it an adapter.

    Args:
        rank: r, as for :class:`LowRankLinear`.
        rng: NumPy generator for the matrices A; those of B are zeros, so the model says what it
            said.
    """
    model.freeze()
    for _, module in list(model.named_modules()):
        for name, child in vars(module).items():
            if isinstance(child, Linear):
                setattr(module, name, LowRankLinear(child, rank, rng))


def adapted_name(path):
    """The path that an array of a model without adapters has in one with them."""
    layer, _, name = path.rpartition(".")
    return f"{layer}.{ADAPTED[name]}" if name in ADAPTED else path
