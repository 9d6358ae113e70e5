"""What the configurations of all models share: a kind, a task, and fields that the data decide."""

from dataclasses import asdict, dataclass, fields
from typing import ClassVar

from minitransformer.core.settings import Settings, at_most, positive

MOST_LAYERS = 1000  # more is no model that anybody trains, and hours of building it


@dataclass(frozen=True)
class ModelConfig(Settings):
    """The base of all configurations.

    Their fields are what a recipe's ``[model]`` and the command line may set, but for those that
    come from the data.

    Attributes:
        kind: the name that ``models/registry.py`` knows the model by.
        task: the name that ``tasks/task.py`` knows by what it is trained for.
        of_data: the fields that come from the data, and stand in no recipe.
        paper_layers: None, or the values of its fields with which its layers are the paper's, in
            ``models/stacks.py``, so that a learner's may stand in for them; the default first.
        begins_with: kinds whose parameters a training of this one may begin with.
        own_head: names, as they begin, of the parameters with which none begins: what says the
            answers.
        adapted: whether only adapters are trained, which are nothing without what they adapt.

    Raises:
        ValueError: a field makes no sense; says what to choose.
    """

    kind: ClassVar[str]
    task: ClassVar[str]
    of_data: ClassVar[tuple] = ()
    paper_layers: ClassVar[dict | None] = None
    begins_with: ClassVar[tuple] = ()
    own_head: ClassVar[tuple] = ()
    adapted: ClassVar[bool] = False

    @classmethod
    def choices(cls):
        """The fields that do not come from the data."""
        return [f for f in fields(cls) if f.name not in cls.of_data]

    def as_dict(self):
        """The kind and all fields, for :func:`config_of`."""
        return {"kind": self.kind, **asdict(self)}

    def without_adapters(self):
        """That of the model which adapters are merged into; the same where there are none."""
        return self

    def trains(self):
        """What a training changes, in words: ``"1,051,136 parameters"``."""
        return f"{self.num_parameters():,} parameters"

    def num_parameters(self):
        """How many numbers the model would train, known without building it."""
        raise NotImplementedError(f"{type(self).__name__} must say how many parameters it makes")


def layers(default):
    """A field that counts layers."""
    return positive(default, at_most(MOST_LAYERS))
