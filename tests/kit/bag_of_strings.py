"""A configuration whose annotations are strings, as a newcomer's file may have them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from bag_of_words import BagOfWords, BagOfWordsConfig


@dataclass(frozen=True)
class BagOfStringsConfig(BagOfWordsConfig):
    """The sizes of a bag of words, and one more."""

    kind: ClassVar[str] = "bag-of-strings"

    _: KW_ONLY
    num_maps: int = 1
    sharpness: float = 1.0


class BagOfStrings(BagOfWords):
    Config = BagOfStringsConfig
