"""What changes the parameters: optimizers, the clipping of gradients, schedules of the rate.

An optimizer is a file here and a line in OPTIMIZERS, by the name that recipes give it. What else
they may say of it, its ``Settings`` have.
"""

from minitransformer.core.libraries import imported

OPTIMIZERS = {
    "adam": "minitransformer.optim.adam:Adam",
    "adamw": "minitransformer.optim.adamw:AdamW",
    "sgd": "minitransformer.optim.sgd:SGD",
}


def optimizer_class(name):
    """The class of that name, an Optimizer, imported when it is asked for."""
    return imported(OPTIMIZERS[name])
