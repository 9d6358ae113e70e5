"""A text, and what its words are, or what it is as a whole: a trained tagger at work."""

from typing import NamedTuple

import numpy as np

from minitransformer.core.backend import to_host
from minitransformer.core.errors import DivergedError, InputError
from minitransformer.data.text.labelled import first_pieces, words_of
from minitransformer.data.text.vocabulary import UNK, normalized
from minitransformer.inference.trained import Trained
from minitransformer.layers.softmax import softmax


class Said(NamedTuple):
    """What a tagger says of a word or a sentence.

    Attributes:
        text: the word or the sentence.
        label: the likeliest, or None of a word beyond the model's context.
        probability: of that label among all labels.
    """

    text: str
    label: str | None
    probability: float


class Labeller(Trained):
    """Says the labels of words or of sentences.

    Args:
        model: a Tagger.
        vocabulary: the Vocabulary it was trained with.
        origin: what its parameters are, in words.
    """

    task = "tagging"
    purpose = "to say labels"

    def unknown(self, text):
        """The words of a text with characters that the vocabulary has not, in order, each once."""
        words = dict.fromkeys(word for word, _ in words_of(normalized(text)))
        return [word for word in words if UNK in self.vocabulary.encode(word)]

    def label(self, text):
        """What the model says of a text: a list of Said.

        Of a model of words it has an entry for each word, and signs are words; of a model of
        sentences it has one.

        Raises:
            ValueError: there is nothing but blanks in the text.
            FloatingPointError: the model gives NaN.
        """
        text = normalized(text)
        if not text:
            raise InputError("there is no word in the text; give a sentence")
        of_words = self.model.config.labels_of == "words"
        words = words_of(text) if of_words else []
        starts = [start for _, start in words]
        ids, places = first_pieces(self.vocabulary, text, starts, self.model.config.max_length)
        with self.model.device.as_current():
            logits, _ = self.model.forward(np.array([ids]))  # (1, T, C)
            p, _ = softmax(logits[0, :, 1:])  # (T, C - 1): 0 is no label
        p = to_host(p)
        if np.isnan(p).any():
            raise DivergedError("the model gives NaN; train it again, or take another run")
        if not of_words:
            return [self._said(text, p[0])]  # at BOS
        return [
            Said(word, None, 0.0) if place is None else self._said(word, p[place])
            for (word, _), place in zip(words, places, strict=True)
        ]

    def _said(self, text, p):
        likeliest = int(p.argmax())
        return Said(text, self.model.config.names[likeliest], float(p[likeliest]))
