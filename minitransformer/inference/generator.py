"""A text, and how it might go on: a trained language model together with its vocabulary."""

import numpy as np

from minitransformer.core.backend import to_host
from minitransformer.core.blas_threads import ONE_BLAS_THREAD
from minitransformer.core.errors import require_whole
from minitransformer.data.text.characters import load_vocabulary
from minitransformer.data.text.vocabulary import EOS, REPLACEMENT
from minitransformer.decoding.sampling import check_sampling, sample
from minitransformer.decoding.states import text_decoder_for
from minitransformer.inference.trained_on_text import TrainedOnText

LONGEST_CHARACTER = 4  # bytes


class TextGenerator(TrainedOnText):
    """Goes on with texts, with a LanguageModel and the vocabulary of its run, of any kind."""

    task = "language modelling"
    read_vocabulary = staticmethod(load_vocabulary)

    def before(self):
        """The ids that a text begins after: a line end, or that a text before it has ended."""
        if self.vocabulary.begins:
            return self.vocabulary.begins
        line_end = self.vocabulary.encode("\n")
        return line_end if line_end and self.vocabulary.unknown not in line_end else [EOS]

    def words(self, text):
        # Subwords know no blank, and compose an accent with its letter.
        return text if self.vocabulary.encode(" ") else text.split()

    def stream(self, prompt="", length=200, *, temperature=1.0, top_k=0, top_p=1.0, seed=0):
        """Yield what follows a prompt, bit by bit, until the text ends.

        Args:
            prompt: the beginning of a text; of a long one the model sees its last
                ``config.max_length`` tokens. After an empty one a new text begins.
            length: the most tokens.
            temperature, top_k, top_p: as for :func:`sampling_probabilities`.
            seed: the same one gives the same text on the same machine.

        Raises:
            ValueError: one of them is out of range.
            FloatingPointError: the model gives NaN.
        """
        require_whole("length", length, least=0)
        check_sampling(temperature, top_k, top_p)
        said = self.vocabulary.encode(prompt)
        how = dict(temperature=temperature, top_k=top_k, top_p=top_p)
        rng = np.random.default_rng(seed)
        with self.model.device.as_current():
            decoder = text_decoder_for(self.model)
        return self._stream(decoder, [*self.before(), *said], said[-1:], length, rng, how)

    def _stream(self, decoder, ahead, last, length, rng, how):
        """What a decoder says after it has read the ids ``ahead``, and has shown those of ``last``.

        In ``ahead`` is, whenever somebody stops listening, what it has said and not read.
        """
        decode = self.vocabulary.decode
        shown = decode(last)
        with self.model.device.as_current():
            for _ in range(length):
                with ONE_BLAS_THREAD:  # for a few rows several gain little, and lose much if busy
                    logits = to_host(decoder.step(list(ahead)))
                ahead.clear()
                token = sample(logits, rng, **how, never=self.vocabulary.never)
                if token in self.vocabulary.ends:
                    return
                ahead.append(token)
                text = decode([*last, token])  # alone a subword would lose the blank before it
                if text.endswith(REPLACEMENT) and len(last) < LONGEST_CHARACTER:
                    last = [*last, token]  # bytes of a character that is not whole yet
                    continue
                yield text[len(shown) :]
                last, shown = [token], decode([token])

    def generate(self, prompt="", length=200, **options):
        """The prompt with what follows; arguments as for :meth:`stream`."""
        return prompt + "".join(self.stream(prompt, length, **options))
