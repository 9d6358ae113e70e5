"""A text with gaps, and what might stand in them: a trained masked language model at work."""

from dataclasses import dataclass

import numpy as np

from minitransformer.core.errors import InputError, require_whole
from minitransformer.data.text.batches import framed
from minitransformer.data.text.vocabulary import BLANK, GAP, MASK, require_mask
from minitransformer.inference.trained_on_text import TrainedOnText
from minitransformer.layers.softmax import softmax


@dataclass(frozen=True)
class Filling:
    """A text without its gaps.

    Attributes:
        text: with the likeliest piece in each gap.
        gaps: for each gap the likeliest pieces with their probabilities, the likeliest first:
            tuples (piece, probability), without the sign for a blank before the piece.
    """

    text: str
    gaps: list[list[tuple[str, float]]]


class Filler(TrainedOnText):
    """Fills the gaps in texts, with a MaskedLanguageModel.

    Raises:
        VocabularyError: the vocabulary has no mask.
    """

    task = "masked language modelling"

    def __init__(self, model, vocabulary, origin=""):
        require_mask(vocabulary)
        super().__init__(model, vocabulary, origin)
        self.pieces = vocabulary.pieces(range(len(vocabulary)))
        begins = np.array([piece.startswith(BLANK) for piece in self.pieces])  # (V,)
        text = (np.arange(len(begins)) > MASK) & np.array([p != BLANK for p in self.pieces])
        self._may_stand = {True: begins & text, False: ~begins & text}  # where a word begins or not

    def fill(self, text, top=5):
        """The likeliest pieces for each gap of a text, all gaps filled at once.

        A gap is three underscores or more, and takes one piece: one that begins a word if a blank
        or nothing stands before the gap, and one that does not begin a word if something does.
        Among these its probability is counted. A blank text stays as it is.

        Args:
            text: a sentence with a gap or several.
            top: how many pieces, at most, for each gap.

        Returns:
            Filling.

        Raises:
            ValueError: there is no gap, or the text is longer than the model takes; the vocabulary
                has no piece that begins a word, or none that does not; or ``top`` is less than 1.
            FloatingPointError: the model gives NaN.
        """
        require_whole("top", top)
        if not text.strip():
            return Filling(text, [])
        longest = self.model.config.max_length - 2  # and BOS and EOS
        if self.vocabulary.surely_has_more(GAP.sub("_", text), longest):
            self._refuse(f"more than {longest}", longest)
        ids, begins = self.vocabulary.encode_with_gaps(text)
        if not begins:
            raise InputError(f"there is no gap in {text[:50]!r}; write ___ for what is left out")
        if len(ids) > longest:
            self._refuse(len(ids), longest)
        ids = np.array([framed(ids, longest + 2)])  # (1, T)
        rows = self.logits(ids)[ids == MASK]  # (gaps, V)
        gaps = [
            self._likeliest(row, self._may_stand[begin], top)
            for row, begin in zip(rows, begins, strict=True)
        ]
        best = iter(gaps)
        return Filling(GAP.sub(lambda _: next(best)[0][0], text), gaps)

    def _likeliest(self, logits, may_stand, top):
        """The ``top`` pieces of those that may stand there, with softmax(logits) over these."""
        ids = np.flatnonzero(may_stand)
        if not len(ids):
            raise InputError("the vocabulary has no piece that may stand in this gap")
        p, _ = softmax(logits[ids].astype(np.float64))
        best = np.argsort(-p, kind="stable")[:top]
        return [(self.pieces[ids[i]].removeprefix(BLANK), float(p[i])) for i in best]

    def _refuse(self, count, longest):
        raise InputError(
            f"the text has {count} pieces, and the model takes {longest} at once; give a shorter "
            "one, such as the sentence around the gap"
        )

    def words(self, text):
        return GAP.sub(" ", text).split()
