"""Pictures and their classes, as all corpora of pictures have them.

A picture is an array (Y, X, C) of bytes: Y rows from the top, X columns from the left, C channels,
one of grey or three of red, green and blue. 0 is dark. Bytes they stay until a batch is made: as
float32 a corpus would take four times the memory.
"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from minitransformer.data.errors import CorpusError


@dataclass(frozen=True, eq=False)
class Pictures:
    """N pictures of one size.

    Attributes:
        pictures: (N, Y, X, C), uint8.
        labels: (N,), int64, the place of each one's class in ``classes``.
        classes: their names.

    Raises:
        CorpusError: the arrays are none of this.
    """

    pictures: np.ndarray
    labels: np.ndarray
    classes: tuple[str, ...]

    def __post_init__(self):
        pictures, labels = self.pictures, self.labels
        if pictures.dtype != np.uint8 or pictures.ndim != 4 or pictures.shape[3] not in (1, 3):
            raise CorpusError(
                f"pictures of type {pictures.dtype} and shape {pictures.shape}; they must be uint8 "
                "and (N, Y, X, C), with C = 1 or 3 channels"
            )
        if labels.dtype != np.int64 or labels.shape != pictures.shape[:1]:
            raise CorpusError(
                f"labels of type {labels.dtype} and shape {labels.shape} for "
                f"{len(pictures):,} pictures; they must be int64, one for each picture"
            )
        twice = [name for name, times in Counter(self.classes).items() if times > 1]
        if twice:
            raise CorpusError(f"two classes have the name {twice[0]!r}; give each one of its own")
        for name in self.classes:
            try:
                name.encode()
            except UnicodeEncodeError as error:
                raise CorpusError(
                    f"the name {name!r} of a class is no text in UTF-8; give it another one"
                ) from error
        wrong = np.flatnonzero((labels < 0) | (labels >= len(self.classes)))
        if len(wrong):
            raise CorpusError(
                f"picture {wrong[0]:,} has the label {labels[wrong[0]]}, and there are "
                f"{len(self.classes)} classes; both are counted from 0"
            )

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, rows):
        """Those of some rows, a slice or an array of numbers."""
        return replace(self, pictures=self.pictures[rows], labels=self.labels[rows])
