"""The task of translating: pairs of sentences in, and BLEU says which epoch is the best."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from minitransformer.core.settings import at_most, positive
from minitransformer.data.text.batches import BatchReport, encode_pairs, make_batches
from minitransformer.data.text.corpus import CorpusError, clean_for_training
from minitransformer.evaluation.scores import sacrebleu_metrics, score
from minitransformer.inference.translator import Translator
from minitransformer.tasks.settings import RecipeError, share_of
from minitransformer.tasks.splits import ParallelData, load_split
from minitransformer.tasks.task import Score, one_pass
from minitransformer.tasks.text import TextTask


@dataclass(frozen=True)
class TranslationData(ParallelData):
    """Pairs of texts to learn translating from.

    Attributes:
        train_share: how much of the pairs to train on is used, drawn by the training's seed; all of
            a smaller share are in a larger one.
        max_tokens: longest side, in subwords and the end symbol, of a training pair; pairs with a
            longer one are left out. The model's max_length, where smaller, counts instead.
    """

    train_share: float = positive(1.0, at_most(1))
    max_tokens: int = 256


class Translation(TextTask):
    """Learns to say the target of each pair; is validated by translating greedily.

    Raises:
        CorpusError: no pair is short enough.
    """

    Data = TranslationData
    score = Score("bleu", "BLEU")
    command = "translate"
    unit = "target token"
    uses = (*TextTask.uses, "subword_dropout")

    def __init__(self, recipe, kept, pairs, validation, progress):
        self.recipe, self.vocabulary = recipe, kept["vocabulary"]
        self.pairs, self.validation = pairs, validation
        self._prepared = lru_cache(maxsize=1)(self._prepare)  # the first is asked for three times
        batch_tokens, longest = recipe.training.batch_tokens, longest_side(recipe)

        encoded, encoding = encode_pairs(self.vocabulary, pairs, longest)
        progress.say(f"training: {encoding}")
        if not encoded:
            raise CorpusError("no training pair is short enough; raise max_tokens and max_length")
        self.always_too_long = encoding.too_long
        progress.say(f"an epoch: {BatchReport.of(self.batches(0))}")

        encoded, encoding = encode_pairs(self.vocabulary, validation, longest)
        progress.say(f"validation loss: {encoding}")
        if not encoded:
            raise CorpusError("no validation pair is short enough; raise max_tokens and max_length")
        self.validation_batches = make_batches(encoded, batch_tokens)

    @classmethod
    def require_sense(cls, recipe):
        super().require_sense(recipe)
        longest_side(recipe)
        sacrebleu_metrics()

    @staticmethod
    def read(recipe, progress):
        pairs, cleaning = clean_for_training(load_split(recipe.data, "train", strict=False))
        progress.say(f"training data: {cleaning}")
        share = recipe.data.train_share
        if share < 1:
            pairs = [pairs[i] for i in share_of(pairs, share, recipe.training.seed)]
            progress.say(f"of these, {len(pairs):,} pairs, a share of {share:g}")
        validation = load_split(recipe.data, "validation")
        if not validation:
            raise CorpusError("there are no validation pairs; give some, held out of training")
        return pairs, validation

    def batches(self, epoch):
        return self._prepared(epoch)[0]

    def left_out(self, epoch):
        return self._prepared(epoch)[1]

    def _prepare(self, epoch):
        """The batches of an epoch, and how many pairs only subword dropout made too long."""
        training, longest = self.recipe.training, longest_side(self.recipe)
        rng = np.random.default_rng((training.seed, epoch))
        encoded, encoding = encode_pairs(
            self.vocabulary, self.pairs, longest, training.subword_dropout, rng
        )
        left_out = max(0, encoding.too_long - self.always_too_long)
        return make_batches(encoded, training.batch_tokens, rng), left_out

    def validate(self, model):
        translator = Translator(model, self.vocabulary, accelerate=self.recipe.training.accelerate)
        translator.workers = self.workers
        hypotheses = translator.translate([source for source, _ in self.validation], beam_size=1)
        scores = score(hypotheses, [target for _, target in self.validation])
        nll, _ = one_pass(model, self.validation_batches, self.workers)
        return {
            "nll": nll,
            "bleu": scores.bleu_cased_13a,
            "chrf2": scores.chrf2,
            "exact_match": scores.exact_match,
        }


def longest_side(recipe):
    """The most tokens, with the end symbol, that a side of a training pair may have.

    Raises:
        RecipeError: a pair of two such sides would be larger than a batch. It is of no use that no
            pair is so long: subword dropout makes a text longer in some epoch.
    """
    longest = min(recipe.data.max_tokens, recipe.model["max_length"])
    batch_tokens = recipe.training.batch_tokens
    if 2 * longest > batch_tokens:
        raise RecipeError(
            f"a pair may have {longest} tokens on each side, and a batch has "
            f"batch_tokens={batch_tokens} for both sides; raise batch_tokens to {2 * longest} "
            f"or lower max_tokens to {batch_tokens // 2}"
        )
    return longest
