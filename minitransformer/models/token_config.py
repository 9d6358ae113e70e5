"""The configurations of models of tokens, whose vocabularies come from the data."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from minitransformer.core.errors import require
from minitransformer.core.settings import at_most, not_negative, one_of, positive, share
from minitransformer.models.config import ModelConfig

TYING = "three-way", "two-way", "none"


def length(default):
    """A field that is the most tokens of a text."""
    return positive(default, at_most(2**20))


class TokenConfig(ModelConfig):
    """The base of those: each has fields ``d_model``, ``max_length`` and ``pad_id``.

    Attributes:
        vocabularies: the fields that are sizes of vocabularies.
    """

    vocabularies: ClassVar[tuple] = ("vocabulary_size",)
    of_data: ClassVar[tuple] = (*vocabularies, "pad_id")
    own_head: ClassVar[tuple] = ("output_projection.",)  # where it has a matrix of its own

    @classmethod
    def sizes(cls, size):
        """The sizes of its vocabularies, where all are one of ``size`` ids, by name."""
        return dict.fromkeys(cls.vocabularies, size)

    @classmethod
    def of_vocabulary(cls, size, **choices):
        """With one vocabulary of ``size`` ids for all that has one; the other fields by name."""
        return cls(**cls.sizes(size), **choices)

    def vocabulary_sizes(self):
        """The sizes of its vocabularies, a set."""
        return {getattr(self, name) for name in self.vocabularies}

    def __post_init__(self):
        super().__post_init__()
        smaller = min(self.vocabulary_sizes())
        require(
            self.pad_id < smaller,
            f"pad_id={self.pad_id!r} is no token id; choose 0 <= pad_id < {smaller}",
        )


@dataclass(frozen=True)
class TranslatorConfig(TokenConfig):
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
    vocabularies: ClassVar[tuple] = ("source_vocabulary_size", "target_vocabulary_size")
    of_data: ClassVar[tuple] = (*vocabularies, "pad_id")

    source_vocabulary_size: int
    target_vocabulary_size: int
    d_model: int = 512
    _: KW_ONLY
    dropout: float = share(0.1)
    tying: str = one_of(TYING, "three-way")
    max_length: int = length(512)
    pad_id: int = not_negative(0)

    def num_embedded(self):
        """How many numbers the embeddings and the output projection train."""
        source, target = self.source_vocabulary_size, self.target_vocabulary_size
        rows = {"three-way": source, "two-way": source + target, "none": source + 2 * target}
        return rows[self.tying] * self.d_model

    def __post_init__(self):
        super().__post_init__()
        require(
            self.tying != "three-way" or self.source_vocabulary_size == self.target_vocabulary_size,
            "three-way tying needs one vocabulary for both sides, and "
            f"source_vocabulary_size={self.source_vocabulary_size} is not "
            f"target_vocabulary_size={self.target_vocabulary_size}; "
            "share the vocabulary or choose tying='two-way'",
        )
