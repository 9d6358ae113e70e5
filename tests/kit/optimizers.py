"""The optimizers as tests try them: one table, for what each promises and for runs with it."""

from dataclasses import dataclass, field

from minitransformer.optim import OPTIMIZERS, optimizer_class


@dataclass(frozen=True)
class Row:
    """One optimizer with some of its settings.

    Attributes:
        name: in OPTIMIZERS.
        theirs: the name of PyTorch's, or None where it has none.
        settings: as a recipe gives them.
        constants: what else our class is given.
        options: what PyTorch's is given, beside the settings.
    """

    name: str
    theirs: str | None
    settings: dict = field(default_factory=dict)
    constants: dict = field(default_factory=dict)
    options: dict = field(default_factory=dict)

    def new(self, flat):
        return optimizer_class(self.name)(flat, **self.settings, **self.constants)

    def __str__(self):
        return " ".join((self.name, *self.settings))


ADAMW = dict(beta_2=0.9, epsilon=0.1), dict(betas=(0.9, 0.9), eps=0.1)
ROWS = [
    Row("adam", "Adam", options=dict(betas=(0.9, 0.98), eps=1e-9)),
    Row("adamw", "AdamW", {}, *ADAMW),
    Row("adamw", "AdamW", dict(weight_decay=0.3), *ADAMW),
    Row("sgd", "SGD"),
    Row("sgd", "SGD", dict(momentum=0.8, weight_decay=0.3)),
    Row("sgd", "SGD", dict(momentum=0.8, weight_decay=0.3, nesterov=True)),
]
OF_EACH = {row.name: row for row in ROWS}  # the last of each optimizer
MISSING = OPTIMIZERS.keys() - OF_EACH.keys()
assert not MISSING, f"add a row for {', '.join(MISSING)} to ROWS of tests/kit/optimizers.py"
