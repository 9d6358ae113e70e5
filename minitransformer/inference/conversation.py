"""A conversation with a language model that was trained on some.

What each says stands between marks, of which the vocabulary has ids of their own (ChatML):

    <|im_start|>user
    What is the capital of France?<|im_end|>
    <|im_start|>assistant
    The capital of France is Paris.<|im_end|>

The model goes on after the third line, and its turn ends where it says so. What was said stays in
the cache of keys and values, so each turn costs its own tokens.
"""

import numpy as np

from minitransformer.core.errors import InputError, require_whole
from minitransformer.decoding.sampling import check_sampling
from minitransformer.decoding.states import text_decoder_for
from minitransformer.inference.generator import TextGenerator

START, END = "<|im_start|>", "<|im_end|>"


class Conversation(TextGenerator):
    """Answers, with all that was said before in mind, as far as the context reaches.

    Args:
        model, vocabulary, origin: as for :class:`TextGenerator`.
        system: what the model is told before the first turn.

    Raises:
        InputError: the vocabulary has no such marks.
    """

    def __init__(self, model, vocabulary, origin="", system=""):
        super().__init__(model, vocabulary, origin)
        if not has_turns(vocabulary):
            raise InputError(
                f"this model's vocabulary has no {START} and {END}, so it was not trained on "
                "conversations of the form that is known here; minitransformer generate goes on "
                "with texts"
            )
        self._start, self._end = vocabulary.special[START], vocabulary.special[END]
        with model.device.as_current():
            self._decoder = text_decoder_for(model)
        self._ahead = self._turn("system", system) if system else []

    def reply(self, text, length=500, *, temperature=0.0, top_k=0, top_p=1.0, seed=0):
        """Yield what the model answers, bit by bit; arguments as for :meth:`stream`."""
        require_whole("length", length, least=0)
        check_sampling(temperature, top_k, top_p)
        how = dict(temperature=temperature, top_k=top_k, top_p=top_p)
        return self._reply(text, length, np.random.default_rng(seed), how)

    def _reply(self, text, length, rng, how):
        self._ahead += [*self._turn("user", text), self._start]
        self._ahead += self.vocabulary.encode("assistant\n")
        try:
            yield from self._stream(self._decoder, self._ahead, [], length, rng, how)
        finally:  # also of an answer that nobody listens to till its end
            self._ahead += self._closed()

    def _turn(self, who, text):
        return [self._start, *self.vocabulary.encode(f"{who}\n{text}"), *self._closed()]

    def _closed(self):
        return [self._end, *self.vocabulary.encode("\n")]


def has_turns(vocabulary):
    """Whether a vocabulary has the marks of a conversation, and its texts end with a turn."""
    special = getattr(vocabulary, "special", {})
    return START in special and special.get(END) in vocabulary.ends
