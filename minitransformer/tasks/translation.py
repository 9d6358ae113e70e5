"""The task of translating: pairs of sentences in, and BLEU says which epoch is the best."""

from functools import lru_cache

import numpy as np

from minitransformer.data.text.batches import BatchReport, encode_pairs, make_batches
from minitransformer.data.text.corpus import CorpusError, clean_for_training
from minitransformer.evaluation.scores import sacrebleu_metrics, score
from minitransformer.inference.translator import Translator
from minitransformer.tasks.splits import load_split
from minitransformer.tasks.task import Score, Task, mean_nll
from minitransformer.training.recipe import RecipeError


class Translation(Task):
    """Learns to say the target of each pair; is validated by translating greedily.

    Raises:
        CorpusError: no pair is short enough.
    """

    score = Score("bleu", "BLEU")
    command = "translate"
    has_tests = True

    def __init__(self, recipe, vocabulary, pairs, validation, progress):
        self.recipe, self.vocabulary = recipe, vocabulary
        self.pairs, self.validation = pairs, validation
        self._prepared = lru_cache(maxsize=1)(self._prepare)  # the first is asked for three times
        batch_tokens, longest = recipe.training.batch_tokens, recipe.longest_side()

        encoded, encoding = encode_pairs(vocabulary, pairs, longest)
        progress.say(f"training: {encoding}")
        if not encoded:
            raise CorpusError("no training pair is short enough; raise max_tokens and max_length")
        self.always_too_long = encoding.too_long
        progress.say(f"an epoch: {BatchReport.of(self.batches(0))}")

        encoded, encoding = encode_pairs(vocabulary, validation, longest)
        progress.say(f"validation loss: {encoding}")
        if not encoded:
            raise CorpusError("no validation pair is short enough; raise max_tokens and max_length")
        self.validation_batches = make_batches(encoded, batch_tokens)

    @staticmethod
    def require_libraries():
        sacrebleu_metrics()

    @staticmethod
    def read(recipe, progress):
        if recipe.data.unit != "subwords":
            raise RecipeError(f"unit={recipe.data.unit!r}; to translate takes subwords")
        recipe.longest_side()  # before any work, do batches and model make sense?
        pairs, cleaning = clean_for_training(load_split(recipe.data, "train", strict=False))
        progress.say(f"training data: {cleaning}")
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
        training, longest = self.recipe.training, self.recipe.longest_side()
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
        return {
            "nll": mean_nll(model, self.validation_batches, self.workers),
            "bleu": scores.bleu_cased_13a,
            "chrf2": scores.chrf2,
            "exact_match": scores.exact_match,
        }
