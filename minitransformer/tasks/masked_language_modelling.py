"""The task of saying what is left out of a sentence (Devlin et al. 2019, section 3.1).

Of the pieces of each sentence 15 % are chosen, and the model is asked for them. If all of them were
hidden behind MASK, it would learn nothing about words that it sees. So it sees, where a piece is
chosen,

    MASK             8 times of 10
    any piece        1 time of 10: what it sees may be wrong
    the piece        1 time of 10: and may be right

and cannot tell which of the visible pieces it will be asked for. Each epoch chooses anew.
"""

import numpy as np

from minitransformer.core.backend import to_host
from minitransformer.data.text.batches import LabelledBatch, framed, group, pad
from minitransformer.data.text.corpus import CorpusError
from minitransformer.data.text.vocabulary import MASK, PAD, UNK, require_mask
from minitransformer.tasks.language_modelling import LanguageModelling, perplexity
from minitransformer.tasks.settings import RecipeError
from minitransformer.tasks.task import one_pass
from minitransformer.tasks.text import require_rows

CHOSEN = 0.15  # of the pieces
HIDDEN, REPLACED = 0.8, 0.1  # of those chosen; the rest is left as it is


class MaskedLanguageModelling(LanguageModelling):
    """Learns to say pieces that are left out; is validated by the perplexity of those.

    Raises:
        CorpusError: there is no sentence with a piece in it.
        VocabularyError: the vocabulary has no mask.
    """

    command = "fill"
    needs_mask = True

    def __init__(self, recipe, kept, examples, validation, progress):
        vocabulary = kept["vocabulary"]
        require_mask(vocabulary)
        self.training = recipe.training
        self.vocabulary_size = len(vocabulary)
        most = recipe.model["max_length"]
        self.sentences = _sentences(vocabulary, examples, most)
        # Whatever the seed of the training: so scores can be compared.
        rng = np.random.default_rng(0)
        held_out = _sentences(vocabulary, validation, most)
        self.validation_batches = list(self._batches(held_out, rng))
        progress.say(
            f"an epoch: {len(self.sentences):,} sentences in {self.num_batches(0):,} batches; "
            f"validation: {sum(batch.num_tokens for batch in self.validation_batches):,} masked "
            "pieces"
        )

    @classmethod
    def require_sense(cls, recipe):
        super().require_sense(recipe)
        if recipe.data.unit != "subwords":
            raise RecipeError(
                f"unit={recipe.data.unit!r}; a masked language model takes subwords, for a "
                "character left out is easily told"
            )
        if recipe.data.context:
            raise RecipeError("context is for language models; a masked one sees sentences")
        require_rows(recipe, framed=True)

    def batches(self, epoch):
        rng = np.random.default_rng((self.training.seed, epoch))
        return self._batches(self.sentences, rng)

    def _batches(self, sentences, rng):
        for members in group(list(map(len, sentences)), self.training.batch_tokens, rng):
            yield masked(pad([sentences[i] for i in members]), self.vocabulary_size, rng)

    def validate(self, model):
        def right(logits, labels):
            likeliest = to_host(logits.argmax(axis=-1))  # (B, T)
            return int(((likeliest == labels) & (labels != PAD)).sum())

        nll, count = one_pass(model, self.validation_batches, self.workers, right)
        accuracy = count / sum(batch.num_tokens for batch in self.validation_batches)
        return {"nll": nll, "perplexity": perplexity(nll), "accuracy": accuracy}


def _sentences(vocabulary, examples, most):
    """The ids of each text that has any, between BOS and EOS, ``most`` of them at most."""
    encoded = vocabulary.encode_all([text for (text,) in examples])
    sentences = [framed(ids, most) for ids in encoded if ids]
    if not sentences:
        raise CorpusError("there is too little text: no sentence with a piece in it")
    return sentences


def masked(ids, vocabulary_size, rng):
    """Sentences of which some pieces are to be said, one of each sentence at least.

    Args:
        ids: (B, T), framed and padded; each row has a piece.
        vocabulary_size: of a vocabulary with a MASK, the pieces of text behind it.
        rng: a NumPy generator.

    Returns:
        LabelledBatch: what is seen, and at the chosen places what stands there.
    """
    piece = (ids == UNK) | (ids > MASK)  # (B, T)
    draw = np.where(piece, rng.random(ids.shape), 1)  # (B, T)
    # Of a sentence of which chance chooses none, the piece that was nearest to it.
    chosen = (draw < CHOSEN) | (draw == draw.min(axis=1, keepdims=True))
    fate = rng.random(ids.shape)
    other = rng.integers(MASK + 1, vocabulary_size, ids.shape)
    seen = np.where(fate < HIDDEN, MASK, np.where(fate < HIDDEN + REPLACED, other, ids))
    seen = np.where(chosen, seen, ids).astype(np.int32)
    return LabelledBatch.of(seen, np.where(chosen, ids, PAD).astype(np.int32))
