"""What changes the parameters: optimizers, the clipping of gradients, schedules of the rate.

An optimizer is a file here and a line in OPTIMIZERS, by the name that recipes give it.
"""

from minitransformer.core.errors import require_one_of
from minitransformer.core.libraries import imported

OPTIMIZERS = {
    "adam": "minitransformer.optim.adam:Adam",
    "adamw": "minitransformer.optim.adamw:AdamW",
    "sgd": "minitransformer.optim.sgd:SGD",
}


def optimizer_class(name):
    """The class of that name, an Optimizer, imported when it is asked for.

    Raises:
        InputError: there is none.
    """
    require_one_of(OPTIMIZERS, "optimizer", name)
    return imported(OPTIMIZERS[name])
