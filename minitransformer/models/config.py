"""What the configurations of all models share: which numbers make sense, and of what kind they are.

A configuration is a frozen dataclass, whose fields are what a recipe's ``[model]`` and the command
line may set. Their names say what they are, and so which values are refused: whole numbers are
counted, so they are 1 or more; a ``…dropout`` is a probability; a ``…vocabulary_size`` and
``pad_id`` come from the vocabulary, ``labels…`` from the examples, and stand in no recipe.
"""

from dataclasses import KW_ONLY, asdict, dataclass, fields
from numbers import Integral, Real
from typing import ClassVar, get_type_hints

from minitransformer.core.errors import InputError

TOO_MANY = 2**31  # of anything that is counted
# More is no model that anybody trains, and a machine would be busy for hours with building it.
MOST_LAYERS = 1000
LONGEST = 2**20


class ModelConfig:
    """The base of all configurations, which are frozen dataclasses.

    Each has the fields ``d_model``, ``max_length`` and ``pad_id``, which a training asks for, and
    one or two sizes of vocabularies.

    Attributes:
        kind: the name that ``models/registry.py`` knows the model by.
        task: the name that ``tasks/task.py`` knows by what it is trained for.
        paper_layers: whether its layers are those of ``models/stacks.py`` as they stand there, so
            that a learner's may stand in for them.
        begins_with: kinds whose parameters a training of this one may begin with.

    Raises:
        ValueError: a field makes no sense; says what to choose.
    """

    kind: ClassVar[str]
    task: ClassVar[str]
    paper_layers: ClassVar[bool] = False
    begins_with: ClassVar[tuple] = ()

    @classmethod
    def choices(cls):
        """The fields that come neither from the vocabulary nor from the examples."""
        return [f for f in fields(cls) if not _is_of_data(f)]

    @classmethod
    def sizes(cls, size):
        """The sizes of its vocabularies, where all are one of ``size`` ids, by name."""
        return {f.name: size for f in fields(cls) if _is_vocabulary(f)}

    @classmethod
    def of_vocabulary(cls, size, **choices):
        """With one vocabulary of ``size`` ids for all that has one; the other fields by name."""
        return cls(**cls.sizes(size), **choices)

    def vocabulary_sizes(self):
        """The sizes of its vocabularies, a set."""
        return {getattr(self, f.name) for f in fields(self) if _is_vocabulary(f)}

    def as_dict(self):
        """The kind and all fields, for :func:`config_of`."""
        return {"kind": self.kind, **asdict(self)}

    def num_parameters(self):
        """How many numbers the model would train, known without building it."""
        raise NotImplementedError(f"{type(self).__name__} must say how many parameters it makes")

    def __post_init__(self):
        types = get_type_hints(type(self))  # which may stand in the file as strings
        for f in fields(self):
            value = getattr(self, f.name)
            if types[f.name] is int and f.name != "pad_id":
                valid = isinstance(value, Integral) and not isinstance(value, bool)
                require(
                    valid and 0 < value < TOO_MANY,
                    f"{f.name}={value!r} must be a whole number, 1 or more, below {TOO_MANY}",
                )
            if f.name.endswith("_layers"):
                require(value <= MOST_LAYERS, f"{f.name}={value!r} must be {MOST_LAYERS} at most")
            if f.name == "max_length":
                require(value <= LONGEST, f"{f.name}={value!r} must be {LONGEST} at most")
            if f.name.endswith("dropout"):
                valid = isinstance(value, Real) and not isinstance(value, bool) and 0 <= value < 1
                require(valid, f"{f.name}={value!r} must lie in 0 <= {f.name} < 1")
        smaller = min(self.vocabulary_sizes())
        require(
            isinstance(self.pad_id, Integral) and 0 <= self.pad_id < smaller,
            f"pad_id={self.pad_id!r} is no token id; choose 0 <= pad_id < {smaller}",
        )


@dataclass(frozen=True)
class TranslatorConfig(ModelConfig):
    """What every model that translates has.

    Attributes:
        source_vocabulary_size, target_vocabulary_size: number of token ids on each side.
        d_model: width of embeddings and of what the output projection is given.
        dropout: the probability of dropping out.
        tying: ``"three-way"``, one matrix for both embeddings and the output projection
            (section 3.4); ``"two-way"``, target embedding and projection; or ``"none"``.
        max_length: longest sequence of either side, in tokens.
        pad_id: the id that stands for no token.
    """

    task: ClassVar[str] = "translation"

    source_vocabulary_size: int
    target_vocabulary_size: int
    d_model: int = 512
    _: KW_ONLY
    dropout: float = 0.1
    tying: str = "three-way"
    max_length: int = 512
    pad_id: int = 0

    def num_embedded(self):
        """How many numbers the embeddings and the output projection train."""
        source, target = self.source_vocabulary_size, self.target_vocabulary_size
        rows = {"three-way": source, "two-way": source + target, "none": source + 2 * target}
        return rows[self.tying] * self.d_model

    def __post_init__(self):
        super().__post_init__()
        require(
            self.tying in ("three-way", "two-way", "none"),
            f"tying={self.tying!r}; choose 'three-way', 'two-way' or 'none'",
        )
        require(
            self.tying != "three-way" or self.source_vocabulary_size == self.target_vocabulary_size,
            "three-way tying needs one vocabulary for both sides, and "
            f"source_vocabulary_size={self.source_vocabulary_size} is not "
            f"target_vocabulary_size={self.target_vocabulary_size}; "
            "share the vocabulary or choose tying='two-way'",
        )


def require(condition, message):
    """Raise a ValueError with this message unless the condition holds."""
    if not condition:
        raise InputError(message)


def _is_of_data(f):
    return _is_vocabulary(f) or f.name == "pad_id" or f.name.startswith("labels")


def _is_vocabulary(f):
    return f.name.endswith("vocabulary_size")
