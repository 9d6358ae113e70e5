"""The tagger: an encoder that says what each word is, or what a whole sentence is.

    y = the stack of x, as of a masked language model        logits = y Wᵀ

Only the last line is new: W has a row for each label, where the masked language model has one for
each piece. So the rest can begin with what that has learned from text without labels (Devlin et al.
2019, section 3.2).

The label of a sentence is read where BOS stands, which sees all of it, and that of a word at its
first piece. Everywhere else there is no label, and nothing to learn.

``B`` batch, ``T`` length, ``D`` d_model, ``C`` number of labels, with the one that means none.
"""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from minitransformer.core.errors import require
from minitransformer.core.settings import one_of
from minitransformer.layers.embedding import OutputProjection, embedding_weight
from minitransformer.models.masked_language_model import (
    MaskedLanguageModel,
    MaskedLanguageModelConfig,
)

MOST_LABELS = 1000
MOST_CHARACTERS = 50_000  # of all names together: a config.json has room for them


@dataclass(frozen=True)
class TaggerConfig(MaskedLanguageModelConfig):
    """The sizes and choices of a masked language model, and the labels.

    Attributes:
        labels: their names with blanks between them; the first has the id 1, and 0 is no label.
        labels_of: what has a label, ``"words"`` or ``"sentences"``.
    """

    kind: ClassVar[str] = "tagger"
    task: ClassVar[str] = "tagging"
    of_data: ClassVar[tuple] = (*MaskedLanguageModelConfig.of_data, "labels", "labels_of")
    begins_with: ClassVar[tuple] = ("masked-language-model", "tagger")

    _: KW_ONLY
    labels: str = ""
    labels_of: str = one_of(("words", "sentences"), "words")

    @property
    def names(self):
        """The names of the labels as a list, in which that of id i is at i - 1."""
        return self.labels.split()

    @property
    def num_labels(self):
        """C."""
        return 1 + len(self.names)

    def num_parameters(self):
        return super().num_parameters() + self.num_labels * self.d_model

    def __post_init__(self):
        super().__post_init__()
        names = self.names
        require(
            len(names) <= MOST_LABELS,
            f"there are {len(names)} different labels, such as {names[:3]}, and may be "
            f"{MOST_LABELS}; are the columns the other way round?",
        )
        require(
            len(self.labels) <= MOST_CHARACTERS,
            f"the names of the labels have {len(self.labels):,} characters, such as "
            f"{self.labels[:40]!r}, and may have {MOST_CHARACTERS:,}; choose shorter ones",
        )
        require(
            len(set(names)) == len(names) and self.labels.isprintable(),
            f"labels={self.labels[:80]!r} must be different names, in characters that are printed",
        )


class Tagger(MaskedLanguageModel):
    """Built from a TaggerConfig; arguments as for :class:`Model`.

    ``forward`` returns logits (B, T, C); the labels of a batch are ids of labels.
    """

    Config: ClassVar[type] = TaggerConfig

    def build(self, config, rng):
        super().build(config, rng)
        self.output_projection = OutputProjection(
            embedding_weight(config.num_labels, config.d_model, rng)
        )
