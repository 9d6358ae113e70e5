import io

import numpy as np
import pytest
from tiny_run import AlwaysSays
from tiny_tasks import TEXT
from tiny_tasks import masked_language_modelling as recipe_for

from minitransformer.cases.models import small_language_model_config
from minitransformer.data.text.characters import CharacterVocabulary
from minitransformer.data.text.corpus import CorpusError
from minitransformer.data.text.vocabulary import (
    BOS,
    EOS,
    MASK,
    PAD,
    UNK,
    Vocabulary,
    VocabularyError,
)
from minitransformer.models.masked_language_model import (
    MaskedLanguageModel,
    MaskedLanguageModelConfig,
)
from minitransformer.tasks import masked_language_modelling
from minitransformer.tasks.masked_language_modelling import MaskedLanguageModelling, masked
from minitransformer.training.progress import Progress

SPECIAL = [PAD, UNK, BOS, EOS, MASK]


@pytest.fixture(scope="module")
def vocabulary():
    return Vocabulary.train(TEXT.split("\n"), 40, mask=True)


def task_of(recipe, vocabulary, validation=((TEXT[:50],),)):
    examples = [(line,) for line in TEXT.split("\n")]
    return MaskedLanguageModelling(
        recipe, {"vocabulary": vocabulary}, examples, list(validation), Progress(io.StringIO())
    )


def said(batch):
    """(what is seen, what is to be said) at the chosen places."""
    chosen = batch.labels != PAD
    return batch.ids[chosen], batch.labels[chosen]


# Which pieces, and what becomes of them

LONG = np.full((400, 102), 9)
LONG[:, 0], LONG[:, -1] = BOS, EOS


def far(count, n, p):
    """By how many standard deviations a count of n is off that of probability p."""
    return abs(count - n * p) / (n * p * (1 - p)) ** 0.5


def test_of_the_pieces_15_percent_are_said_and_of_these_8_of_10_are_hidden():
    batch = masked(LONG, 1000, np.random.default_rng(3))
    seen, label = said(batch)
    assert (label == 9).all()
    assert far(len(label), 400 * 100, 0.15) < 3
    assert far((seen == MASK).sum(), len(seen), 0.8) < 3
    assert far((seen == 9).sum(), len(seen), 0.1 + 0.1 / 995) < 3
    other = seen[(seen != MASK) & (seen != 9)]
    assert not set(other) & set(SPECIAL)
    assert other.min() < 50
    assert other.max() > 950
    assert (batch.ids == LONG)[batch.labels == PAD].all()  # what is not said is seen as it is
    assert batch.num_tokens == (batch.labels != PAD).sum()
    assert batch.ids.dtype == batch.labels.dtype == np.int32


def test_symbols_and_padding_are_never_asked_for_and_an_unknown_piece_may_be():
    ids = np.array([[BOS, UNK, EOS, PAD], [BOS, 7, 8, EOS]] * 500)
    batch = masked(ids, 1000, np.random.default_rng(0))
    assert set(said(batch)[1]) == {UNK, 7, 8}
    for special in (BOS, EOS, PAD):
        np.testing.assert_array_equal(batch.ids == special, ids == special)


def test_each_sentence_has_a_piece_to_say():
    ids = np.array([[BOS, 7, 8, EOS, PAD]] * 1000)
    counts = (masked(ids, 1000, np.random.default_rng(0)).labels != PAD).sum(axis=1)
    assert counts.min() == 1
    first = masked(ids, 1000, np.random.default_rng(0)).labels[:, 1] != PAD
    assert 400 < first.sum() < 600


# Nothing tells the word that is asked for


def the_hidden_word_is_not_told(seed=0):
    """The logits at a MASK are those of another text, which differs in the hidden word alone."""
    model = MaskedLanguageModel(
        small_language_model_config(kind=MaskedLanguageModelConfig), 1, dtype=np.float64
    )
    ids = np.array([[BOS, 7, 8, EOS], [BOS, 9, 10, EOS]])
    batch = masked(ids, 11, np.random.default_rng(seed))
    hidden = (batch.labels != PAD) & (batch.ids == MASK)
    if not hidden.any():
        return True
    other = masked(np.where(hidden, 6, ids), 11, np.random.default_rng(seed))
    assert (other.labels[hidden] == 6).all()
    logits, of_other = (model.forward(each.ids)[0] for each in (batch, other))
    return np.array_equal(logits[hidden], of_other[hidden])


def test_the_logits_at_a_mask_do_not_depend_on_what_stood_there():
    assert all(the_hidden_word_is_not_told(seed) for seed in range(20))


def test_a_masking_that_shows_the_word_beside_the_mask_is_told(monkeypatch):
    right = masked_language_modelling.masked

    def leaking(ids, vocabulary_size, rng):
        batch = right(ids, vocabulary_size, rng)
        batch.ids[:, 0] = batch.labels.max(axis=1)
        return batch

    monkeypatch.setitem(globals(), "masked", leaking)
    assert not all(the_hidden_word_is_not_told(seed) for seed in range(20))


def test_from_a_sentence_to_its_batch_only_the_labels_know_the_hidden_word(tmp_path, vocabulary):
    """Two texts that differ in their words, but not in where pieces are, are seen alike at MASK."""
    task = task_of(recipe_for(tmp_path), vocabulary)
    batches = list(task.batches(0))
    task.sentences = [[BOS, *(i % 35 + MASK + 1 for i in ids[1:-1]), EOS] for ids in task.sentences]
    for one, other in zip(batches, task.batches(0), strict=True):
        np.testing.assert_array_equal(one.ids == MASK, other.ids == MASK)
        np.testing.assert_array_equal(one.labels == PAD, other.labels == PAD)
        assert (one.labels != other.labels)[one.labels != PAD].all()


# Epochs


def rows_of(batches):
    return sorted(tuple(row) for batch in batches for row in batch.ids.tolist())


def test_an_epoch_has_every_sentence_once_between_its_symbols(tmp_path, vocabulary):
    task = task_of(recipe_for(tmp_path), vocabulary)
    texts = []
    for batch in task.batches(0):
        ids = np.where(batch.labels != PAD, batch.labels, batch.ids)
        assert (ids[:, 0] == BOS).all()
        assert ((ids == EOS).sum(axis=1) == 1).all()
        assert batch.ids.size <= 120
        texts += [vocabulary.decode(row) for row in ids]
    expected = [vocabulary.encode(line)[:10] for line in TEXT.split("\n") if line]
    assert sorted(texts) == sorted(map(vocabulary.decode, expected))


def test_a_sentence_longer_than_the_context_is_cut_and_keeps_its_symbols(tmp_path, vocabulary):
    task = task_of(recipe_for(tmp_path, max_length=6), vocabulary)
    assert {len(ids) for ids in task.sentences} == {6}
    assert {(ids[0], ids[-1]) for ids in task.sentences} == {(BOS, EOS)}


def test_another_seed_chooses_others_to_learn_and_the_same_to_validate(tmp_path, vocabulary):
    one, other = (task_of(recipe_for(tmp_path, seed=seed), vocabulary) for seed in (0, 1))
    assert rows_of(one.batches(0)) != rows_of(other.batches(0))
    assert rows_of(one.validation_batches) == rows_of(other.validation_batches)


# Validation


def test_accuracy_is_the_share_of_chosen_pieces_that_are_said(tmp_path, vocabulary):
    task = task_of(recipe_for(tmp_path), vocabulary, [(line,) for line in TEXT.split("\n")[:20]])
    labels = np.concatenate([batch.labels.ravel() for batch in task.validation_batches])
    said, counts = np.unique(labels[labels != PAD], return_counts=True)
    says_one = AlwaysSays(np.eye(40)[said[counts.argmax()]])
    assert task.validate(says_one)["accuracy"] == pytest.approx(counts.max() / counts.sum())
    assert task.validate(AlwaysSays(np.eye(40)[PAD]))["accuracy"] == 0  # which is never right


# What is refused


def test_a_text_of_nothing_but_reserved_signs_is_refused(tmp_path, vocabulary):
    with pytest.raises(CorpusError, match="no sentence with a piece in it"):
        task_of(recipe_for(tmp_path), vocabulary, [("\u2581",)])


@pytest.mark.parametrize(
    "without", [Vocabulary.train([TEXT], 30), CharacterVocabulary.train([TEXT])]
)
def test_a_vocabulary_without_a_mask_is_refused(without, tmp_path):
    with pytest.raises(VocabularyError, match="has no mask"):
        task_of(recipe_for(tmp_path), without)
