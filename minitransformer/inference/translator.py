"""Text in, text out: a trained model together with its vocabulary."""

from dataclasses import dataclass

import numpy as np

from minitransformer.core.backend import CPU
from minitransformer.core.errors import InputError
from minitransformer.core.twins import accelerated
from minitransformer.core.workers import Workers, available_cores
from minitransformer.data.text.vocabulary import EOS
from minitransformer.decoding import translate_ids
from minitransformer.inference.trained_on_text import TrainedOnText


@dataclass(frozen=True)
class Translated:
    """One translation of one text.

    Attributes:
        text: the translation.
        score: log-probability over the length penalty, what the n best are ranked by.
        finished: False where the maximum length cut it off.
        truncated: True where the source was longer than the model takes and its end was left out.
        source_pieces, pieces: the subwords of both sides, the end symbol included.
        attention: weights (layers, H, pieces, source pieces) if asked for, else None.
    """

    text: str
    score: float
    finished: bool
    truncated: bool
    source_pieces: list[str]
    pieces: list[str]
    attention: np.ndarray | None


class Translator(TrainedOnText):
    """Translates texts with a model.

    Args:
        model: an EncoderDecoder.
        vocabulary: the Vocabulary it was trained with.
        origin: what its parameters are, in words.
        accelerate: whether to use the faster twins of functions that have one.
        threads: how many translate side by side, each some of the texts; by default one for each
            core, and one for a GPU, which is kept busy by one.

    Attributes:
        workers: the Workers that share the batches, those ``threads`` at first.
    """

    task = "translation"

    def __init__(self, model, vocabulary, origin="", *, accelerate=True, threads=None):
        super().__init__(model, vocabulary, origin)
        self.accelerate = accelerate
        self.workers = Workers(threads or (available_cores() if model.device == CPU else 1))

    def translate(self, texts, *, beam_size=4, alpha=0.6):
        """The best translation of each text.

        A blank text has a blank translation. A text longer than the model takes is cut to what it
        does take; :meth:`translations` says which were.

        Args:
            texts: list of strings, one sentence each.
            beam_size, alpha: as for :func:`beam_search`; a beam of 1 is greedy.

        Raises:
            TypeError: ``texts`` is one string.
            ValueError, FloatingPointError: as for :func:`beam_search`; or there are more hypotheses
                in the beam than pieces in the vocabulary.
        """
        return [best[0].text for best in self.translations(texts, beam_size=beam_size, alpha=alpha)]

    def translations(self, texts, *, beam_size=4, alpha=0.6, n_best=1, attention=False):
        """The ``n_best`` translations of each text, best first, as lists of Translated.

        A blank text has one, which is blank. The other arguments are those of :meth:`translate`.
        """
        if isinstance(texts, str):
            raise TypeError("texts is one string; give a list of texts, such as [text]")
        # More could still change what is found, but memory grows with the product of both.
        if beam_size > len(self.vocabulary):
            raise InputError(
                f"beam_size={beam_size} is more than the {len(self.vocabulary)} pieces of the "
                "vocabulary; 4 to 10 is usual"
            )
        longest = self.model.config.max_length - 1  # and the end symbol
        encoded = [self.vocabulary.encode(text, longest + 1) for text in texts]
        sources = [[*ids[:longest], EOS] for ids in encoded]
        spoken = [i for i, ids in enumerate(encoded) if ids]
        with accelerated(self.accelerate), self.workers.one_blas_thread():
            found = translate_ids(
                self.model,
                [sources[i] for i in spoken],
                beam_size=beam_size,
                alpha=alpha,
                n_best=n_best,
                attention=attention,
                workers=self.workers,
            )
        results = [[Translated("", 0.0, True, False, [], [], None)] for _ in texts]
        for i, hypotheses in zip(spoken, found, strict=True):
            truncated = len(encoded[i]) > longest
            results[i] = [self._translated(sources[i], h, truncated) for h in hypotheses]
        return results

    def _translated(self, source, hypothesis, truncated):
        ids = [*hypothesis.ids, EOS] if hypothesis.finished else hypothesis.ids
        return Translated(
            text=self.vocabulary.decode(hypothesis.ids),
            score=hypothesis.score,
            finished=hypothesis.finished,
            truncated=truncated,
            source_pieces=self.vocabulary.pieces(source),
            pieces=self.vocabulary.pieces(ids),
            attention=hypothesis.attention,
        )
