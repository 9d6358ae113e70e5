"""A text, and what its words are, or what it is as a whole: a trained tagger at work."""

from typing import NamedTuple

import numpy as np

from minitransformer.data.text.labelled import first_pieces, words_of
from minitransformer.data.text.vocabulary import normalized
from minitransformer.inference.trained_on_text import TrainedOnText
from minitransformer.layers.softmax import softmax


class Prediction(NamedTuple):
    """What a tagger says of a word or a sentence.

    Attributes:
        text: the word or the sentence.
        label: the likeliest, or None of a word beyond the model's context.
        probability: of that label among all labels.
    """

    text: str
    label: str | None
    probability: float


class Labeller(TrainedOnText):
    """Says the labels of words or of sentences, with a Tagger."""

    task = "tagging"

    def words(self, text):
        return [word for word, _ in words_of(normalized(text))]

    def label(self, text):
        """What the model says of a text: a list of Predictions.

        Of a model of words it has an entry for each word, and signs are words; of a model of
        sentences it has one. Of a blank text it is empty.

        Raises:
            FloatingPointError: the model gives NaN.
        """
        text = normalized(text)
        if not text:
            return []
        of_words = self.model.config.labels_of == "words"
        words = words_of(text) if of_words else []
        starts = [start for _, start in words]
        ids, places = first_pieces(self.vocabulary, text, starts, self.model.config.max_length)
        p, _ = softmax(self.logits(np.array([ids]))[0, :, 1:])  # (T, C - 1): 0 is no label
        if not of_words:
            return [self._prediction(text, p[0])]  # at BOS
        return [
            Prediction(word, None, 0.0) if place is None else self._prediction(word, p[place])
            for (word, _), place in zip(words, places, strict=True)
        ]

    def _prediction(self, text, p):
        likeliest = int(p.argmax())
        return Prediction(text, self.model.config.names[likeliest], float(p[likeliest]))
