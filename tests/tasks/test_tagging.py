import io
from itertools import pairwise

import numpy as np
import pytest
from tiny_run import AlwaysSays, tiny_trainer, trained
from tiny_tasks import WHOLE, WORDS
from tiny_tasks import tagging as recipe_for

from minitransformer.data.text.characters import CharacterVocabulary
from minitransformer.data.text.vocabulary import BOS, EOS, PAD, Vocabulary, VocabularyError
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.tagging import Tagging, TaggingData
from minitransformer.training.progress import Progress
from minitransformer.training.recipe import Recipe


def read(recipe):
    return Tagging.read(recipe, Progress(io.StringIO()))


def task_of(recipe, vocabulary=None, out=None):
    examples, validation = read(recipe)
    vocabulary = vocabulary or Vocabulary.train(Tagging.texts(examples, validation), 40)
    kept, progress = {"vocabulary": vocabulary}, Progress(out or io.StringIO())
    return Tagging(recipe, kept, examples, validation, progress)


def rows_of(task):
    batches = list(task.batches(0))
    assert len(batches) == task.num_batches(0)
    return [row for batch in batches for row in zip(batch.ids, batch.labels, strict=True)]


def test_each_word_has_its_label_at_its_first_piece_and_nothing_has_one_elsewhere(tmp_path):
    task = task_of(recipe_for(tmp_path))
    assert task.names == ["D", "N", "S", "V"]
    for ids, labels in rows_of(task):
        length = int((ids != PAD).sum())
        assert (ids[0], ids[length - 1]) == (BOS, EOS)
        assert [task.names[label - 1] for label in labels[labels != PAD]] == ["D", "N", "V", "S"]
        pieces = task.vocabulary.pieces(ids[labels != PAD])
        assert [piece.strip("▁")[0] for piece in pieces][0::3] == ["t", "."]


def test_a_sentence_has_its_label_where_it_begins(tmp_path):
    task = task_of(recipe_for(tmp_path, WHOLE))
    assert task.names == ["e", "r", "s", "w"]
    for ids, labels in rows_of(task):
        assert ids[0] == BOS
        assert (labels != PAD).tolist() == [True] + [False] * (len(labels) - 1)
        text = task.vocabulary.decode(ids[1:])
        assert text.split()[2][0] == task.names[labels[0] - 1]


@pytest.mark.parametrize(("content", "of"), [(WORDS, "words"), (WHOLE, "sentences")])
def test_what_the_labels_are_of_is_known_from_the_examples(content, of, tmp_path):
    recipe = recipe_for(tmp_path, content)
    both = read(recipe)
    kept = {"vocabulary": CharacterVocabulary("abc")}
    assert Tagging.of_data(recipe, *both, kept)["labels_of"] == of


@pytest.mark.parametrize(("number", "held_out"), [(2, 1), (4, 1), (5, 1), (48, 5)])
def test_the_last_tenth_validates_and_one_sentence_at_least(number, held_out, tmp_path):
    sentences = WORDS.split("\n\n")[:number]
    examples, validation = read(recipe_for(tmp_path, "\n\n".join(sentences)))
    assert (len(examples), len(validation)) == (number - held_out, held_out)
    last = [line.split("\t") for line in sentences[-1].split("\n")]
    assert validation[-1] == tuple(map(" ".join, zip(*last, strict=True)))


@pytest.mark.parametrize(("label", "told"), [("w", False), ("x", True)])
def test_a_label_that_only_the_validation_has_is_said_to_be_out_of_reach(label, told, tmp_path):
    last = "\tthe cow waits.\n"
    out = io.StringIO()
    task_of(recipe_for(tmp_path, f"{WHOLE.removesuffix(f'w{last}')}{label}{last}"), out=out)
    said = (
        "1 of the 5 labels of the validation are ones that no sentence to train on has (x): they "
        "cannot be learned, and the accuracy is 0.8000 at most; "
    )
    assert (said in out.getvalue()) == told
    assert ("at most" in out.getvalue()) == told


def with_labels(recipe):
    examples, _ = read(recipe)
    assert len(examples) == 43  # the others are still text to learn a vocabulary from
    return {i for i, (_, labels) in enumerate(examples) if labels}


def test_a_smaller_share_of_the_labels_lies_in_a_larger_one(tmp_path):
    shares = [
        with_labels(recipe_for(tmp_path, labelled_share=share)) for share in (0.01, 0.1, 0.5, 1.0)
    ]
    assert [len(share) for share in shares] == [1, 4, 22, 43]
    assert all(small < large for small, large in pairwise(shares))
    other = with_labels(recipe_for(tmp_path, labelled_share=0.5, seed=1))
    assert len(other) == 22
    assert other != shares[2]


def test_an_epoch_has_each_labelled_sentence_once_and_each_epoch_its_own_order(tmp_path):
    out = io.StringIO()
    task = task_of(recipe_for(tmp_path, labelled_share=0.5), out=out)
    assert "an epoch: 22 of 43 sentences, which have labels of their words, in " in out.getvalue()
    assert "; 0 words are beyond the context; validation: 20 labels\n" in out.getvalue()
    orders = [[tuple(row) for b in task.batches(e) for row in b.ids.tolist()] for e in (0, 1, 0)]
    assert orders[0] == orders[2] != orders[1]
    assert len(orders[0]) == 22
    assert sorted(orders[0]) == sorted(orders[1])


def saying(label, num_labels):
    """A model that says the label of this id, and no label louder still."""
    logits = np.zeros(1 + num_labels)
    logits[[0, label]] = 2, 1
    return AlwaysSays(logits)


def test_accuracy_and_f1_of_a_model_that_says_one_label_are_known(tmp_path):
    task = task_of(recipe_for(tmp_path))
    scores = task.validate(saying(2, 4))
    assert scores["accuracy"] == 0.25
    assert scores["macro_f1"] == pytest.approx((2 * 0.25 * 1 / 1.25) / 4)
    assert scores["nll"] == pytest.approx(np.log(np.exp([2, 1, 0, 0, 0]).sum()) - 0.25)
    _, *rows = task.details()
    of_n = dict(N="0.2500 1.0000 0.4000")
    assert [row.split() for row in rows] == [
        [name, *of_n.get(name, "0.0000 0.0000 0.0000").split(), "5"] for name in "DNSV"
    ]


def test_a_vocabulary_is_learned_from_sentences_as_people_write_them(tmp_path):
    for content in (WORDS, WHOLE):
        assert Tagging.texts(*read(recipe_for(tmp_path, content)))[0] == "the dog runs."
    # Of words, although no sentence of several words to train on has its labels.
    assert Tagging.texts([("a .", ""), ("no", "X")], [("a dog", "D N")]) == ["a.", "no"]


def test_a_label_of_the_validation_alone_is_a_label(tmp_path):
    task = task_of(recipe_for(tmp_path, WORDS + "a\tX\n"))
    assert task.names == ["D", "N", "S", "V", "X"]


def test_a_label_that_nothing_validates_does_not_count_for_the_mean_of_f1(tmp_path):
    task = task_of(recipe_for(tmp_path, "a\tX\n\n" + WORDS))
    assert task.names == ["D", "N", "S", "V", "X"]
    assert task.validate(saying(2, 5))["macro_f1"] == pytest.approx(0.4 / 4)


def test_of_words_within_one_piece_the_first_has_its_label(tmp_path):
    content = "Er\tP\n" + "".join(f".\t{name}\n" for name in "SXX") + "geht\tV\n\n"
    vocabulary = Vocabulary.train(["Er ... ... ... geht ...", "..."] * 20, 20)
    task = task_of(recipe_for(tmp_path, content * 20), vocabulary)
    assert "..." in vocabulary.pieces(vocabulary.encode("Er... geht"))
    for _, labels in rows_of(task):
        assert [task.names[label - 1] for label in labels[labels != PAD]] == ["P", "S", "V"]


def test_a_run_that_an_older_release_has_begun_so_goes_on(tmp_path, monkeypatch):
    recipe = recipe_for(tmp_path, labels="case", epochs=1)
    with monkeypatch.context() as older:
        older.setattr(TaggingData, "require_used", lambda data: None)
        tiny_trainer(recipe, tmp_path / "run").save()
    trained(Recipe.of_run(RunFolder(tmp_path / "run")), tmp_path / "run")


def test_characters_are_refused_whoever_brings_them(tmp_path):
    with pytest.raises(VocabularyError, match="a tagger takes subwords"):
        task_of(recipe_for(tmp_path), CharacterVocabulary.train([WORDS]))
