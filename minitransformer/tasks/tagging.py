"""The task of saying what words or sentences are: their labels.

Where the training begins with what a masked language model has learned, this is fine-tuning
(Devlin et al. 2019, section 4); the task is the same. What the model sees are whole sentences
between BOS and EOS. The label of a word is asked for at its first piece, that of a sentence at BOS.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from minitransformer.core.backend import to_host
from minitransformer.core.settings import at_most, positive
from minitransformer.data.text.batches import LabelledBatch, group, pad
from minitransformer.data.text.corpus import CorpusError
from minitransformer.data.text.labelled import first_pieces, read_labelled, surface
from minitransformer.data.text.toy import labelled_toy_corpus
from minitransformer.data.text.vocabulary import PAD, Vocabulary, VocabularyError
from minitransformer.evaluation.confusion import lines_of_classes, shares
from minitransformer.tasks.settings import share_of
from minitransformer.tasks.task import Score, one_pass
from minitransformer.tasks.text import TextData, TextTask, require_rows

HELD_OUT = 0.1  # of the sentences of a file, from its end: what validates


@dataclass(frozen=True)
class TaggingData(TextData):
    """Sentences, and labels of them or of their words.

    Attributes:
        corpus: ``"toy"``, or ``"labelled"`` for a file of labels.
        labelled: a file of labels, plain or .gz, whose last tenth chooses the epoch: word, tab and
            label in a line, and a blank line between sentences; or, without blank lines, label, tab
            and sentence.
        labels: of the toy corpus: ``"part-of-speech"``, ``"case"`` or ``"number"`` of each word, or
            the ``"tense"`` of each sentence.
        labelled_share: how much of the training sentences a tagger is given the labels of, drawn
            by the seed; all of a smaller share are in a larger one.
    """

    corpora: ClassVar[dict] = {"toy": ((), ("labels",)), "labelled": (("labelled",), ())}

    corpus: str = "toy"
    labelled: str = ""
    labels: str = ""
    labelled_share: float = positive(1.0, at_most(1))


class Tagging(TextTask):
    """Learns the labels of words or sentences; is validated by how many it says rightly.

    Attributes:
        counts: how often the last validation said of each label (rows) that it is each label
            (columns).

    Raises:
        VocabularyError: the vocabulary is not one of subwords.
    """

    Data = TaggingData
    score = Score("accuracy", "accuracy", digits=4)
    command = "tag"

    def __init__(self, recipe, kept, examples, validation, progress):
        vocabulary = kept["vocabulary"]
        if not isinstance(vocabulary, Vocabulary):
            raise VocabularyError("a tagger takes subwords, and this vocabulary is of characters")
        self.training, self.vocabulary = recipe.training, vocabulary
        self.most = recipe.model["max_length"]
        fields = _label_fields(examples, validation)
        self.names, self.of_words = fields["labels"].split(), fields["labels_of"] == "words"
        self.ids = {name: i for i, name in enumerate(self.names, start=1)}
        labelled = [example for example in examples if example[1]]
        self.rows, cut_off = self._encoded(labelled)
        rows, _ = self._encoded(validation)
        self.validation_batches = list(self._batches(rows))
        labels = "labels of their words" if self.of_words else "a label each"
        progress.say(
            f"an epoch: {len(self.rows):,} of {len(examples):,} sentences, which have "
            f"{labels}, in {self.num_batches(0):,} batches; {cut_off:,} words are beyond the "
            f"context; validation: {sum(b.num_tokens for b in self.validation_batches):,} labels"
        )
        self._note_unlearnable(progress)

    def _note_unlearnable(self, progress):
        """Say which labels validate that no training sentence has: no model learns to say them."""
        learned = {label for _, labels in self.rows for label in labels}
        asked = [i for batch in self.validation_batches for i in batch.labels[batch.labels != PAD]]
        never = [i for i in asked if i not in learned]
        if never:
            names = ", ".join(self.names[i - 1] for i in sorted(set(never))[:5])
            progress.say(
                f"{len(never):,} of the {len(asked):,} labels of the validation are ones that no "
                f"sentence to train on has ({names}): they cannot be learned, and the accuracy is "
                f"{1 - len(never) / len(asked):.4f} at most; train on such sentences, too, for "
                "example by shuffling the file"
            )

    @classmethod
    def require_sense(cls, recipe):
        super().require_sense(recipe)
        require_rows(recipe, framed=True)

    @staticmethod
    def read(recipe, progress):
        examples, validation = load_labelled(recipe.data)
        progress.say(f"labelled sentences: {len(examples):,}; validation: {len(validation):,}")
        share, seed = recipe.data.labelled_share, recipe.training.seed
        return _with_a_share(examples, share, seed), validation

    @staticmethod
    def texts(examples, validation):
        of_words = _of_words([*examples, *validation])
        return [surface(text.split())[0] if of_words else text for text, _ in examples]

    @classmethod
    def of_data(cls, recipe, examples, validation, kept):
        sizes = super().of_data(recipe, examples, validation, kept)
        return sizes | _label_fields(examples, validation)

    def _encoded(self, examples):
        """(ids, labels) of each sentence, and how many words are beyond the context."""
        rows, cut_off = [], 0
        for text, names in examples:
            text, starts = surface(text.split()) if self.of_words else (text, [])
            ids, places = first_pieces(self.vocabulary, text, starts, self.most)
            places = places if self.of_words else [0]  # BOS
            labels = [PAD] * len(ids)
            for place, name in zip(places, names.split(), strict=True):
                if place is None:
                    cut_off += 1
                elif labels[place] == PAD:  # and no word before it has the piece
                    labels[place] = self.ids[name]
            rows.append((ids, labels))
        return rows, cut_off

    def batches(self, epoch):
        return self._batches(self.rows, np.random.default_rng((self.training.seed, epoch)))

    def _batches(self, rows, rng=None):
        for members in group([len(ids) for ids, _ in rows], self.training.batch_tokens, rng):
            ids, labels = zip(*(rows[i] for i in members), strict=True)
            yield LabelledBatch.of(pad(ids), pad(labels))

    def validate(self, model):
        nll, counts = one_pass(model, self.validation_batches, self.workers, self._said)
        self.counts = counts
        _, _, f1 = shares(counts)
        return {
            "nll": nll,
            "accuracy": float(counts.trace() / counts.sum()),
            "macro_f1": float(f1[counts.sum(axis=1) > 0].mean()),
        }

    def details(self):
        return lines_of_classes(self.names, self.counts, heading="label")

    def _said(self, logits, labels):
        """How often each label (rows) was said to be each label (columns)."""
        counts = np.zeros((len(self.names), len(self.names)), int)
        said = to_host(logits[..., 1:].argmax(axis=-1))  # (B, T)
        there = labels != PAD
        np.add.at(counts, (labels[there] - 1, said[there]), 1)
        return counts


def load_labelled(data):
    """(examples to train on, examples to validate with), as ``data/text/labelled.py`` has them.

    Raises:
        CorpusError: the file cannot be used, or has fewer than two sentences.
        RecipeError, ValueError: the settings do not say which labels, or none that there are.
    """
    data.require_sense()
    if data.corpus == "toy":
        corpus = labelled_toy_corpus(data.labels)
        return corpus["train"], corpus["validation"]
    examples = read_labelled(data.labelled)
    if len(examples) < 2:
        raise CorpusError(
            f"{data.labelled} has {len(examples)} sentences; give more, to train and to validate"
        )
    held_out = max(1, round(HELD_OUT * len(examples)))
    return examples[:-held_out], examples[-held_out:]


def _label_fields(examples, validation):
    """What the configuration of a tagger says of its labels, a dict."""
    both = [*examples, *validation]
    return {
        "labels": " ".join(sorted({name for _, labels in both for name in labels.split()})),
        "labels_of": "words" if _of_words(both) else "sentences",
    }


def _of_words(examples):
    """Whether the labels are those of words: of a sentence there is only one."""
    return any(" " in labels for _, labels in examples)


def _with_a_share(examples, share, seed):
    """The examples, those beyond the share without their labels."""
    kept = set(share_of(examples, share, seed))
    return [(text, labels * (i in kept)) for i, (text, labels) in enumerate(examples)]
