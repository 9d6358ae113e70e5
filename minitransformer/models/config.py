"""What the configurations of all models share: which numbers make sense, and where they are from.

A configuration is a frozen dataclass, whose fields are what a recipe's ``[model]`` and the command
line may set, but for those that come from the data. Whole numbers are counted, so they are 1 or
more; a ``…dropout`` is a probability.
"""

from dataclasses import asdict, fields
from numbers import Integral, Real
from typing import ClassVar, get_type_hints

from minitransformer.core.errors import require

TOO_MANY = 2**31  # of anything that is counted
# More is no model that anybody trains, and a machine would be busy for hours with building it.
MOST_LAYERS = 1000


class ModelConfig:
    """The base of all configurations, which are frozen dataclasses.

    Attributes:
        kind: the name that ``models/registry.py`` knows the model by.
        task: the name that ``tasks/task.py`` knows by what it is trained for.
        of_data: the fields that come from the data, and stand in no recipe; a subclass says which
            of their values make sense.
        paper_layers: whether its layers are those of ``models/stacks.py`` as they stand there, so
            that a learner's may stand in for them.
        begins_with: kinds whose parameters a training of this one may begin with.
        own_head: names, as they begin, of the parameters with which none begins: what says the
            answers.

    Raises:
        ValueError: a field makes no sense; says what to choose.
    """

    kind: ClassVar[str]
    task: ClassVar[str]
    of_data: ClassVar[tuple] = ()
    paper_layers: ClassVar[bool] = False
    begins_with: ClassVar[tuple] = ()
    own_head: ClassVar[tuple] = ()

    @classmethod
    def choices(cls):
        """The fields that do not come from the data."""
        return [f for f in fields(cls) if f.name not in cls.of_data]

    def as_dict(self):
        """The kind and all fields, for :func:`config_of`."""
        return {"kind": self.kind, **asdict(self)}

    def num_parameters(self):
        """How many numbers the model would train, known without building it."""
        raise NotImplementedError(f"{type(self).__name__} must say how many parameters it makes")

    def __post_init__(self):
        types = get_type_hints(type(self))  # which may stand in the file as strings
        for f in self.choices():
            value = getattr(self, f.name)
            if types[f.name] is int:
                require_count(f.name, value)
            if f.name.endswith("_layers"):
                require(value <= MOST_LAYERS, f"{f.name}={value!r} must be {MOST_LAYERS} at most")
            if f.name.endswith("dropout"):
                valid = isinstance(value, Real) and not isinstance(value, bool) and 0 <= value < 1
                require(valid, f"{f.name}={value!r} must lie in 0 <= {f.name} < 1")


def require_count(name, value):
    """Raise a ValueError unless so many of anything can be there."""
    valid = isinstance(value, Integral) and not isinstance(value, bool) and 0 < value < TOO_MANY
    require(valid, f"{name}={value!r} must be a whole number, 1 or more, below {TOO_MANY}")
