import io

import numpy as np
import pytest
from tiny_run import AlwaysSays
from tiny_tasks import TEXT
from tiny_tasks import language_modelling as recipe_for

from minitransformer.data.text.characters import CharacterVocabulary
from minitransformer.data.text.corpus import CorpusError
from minitransformer.data.text.vocabulary import EOS, PAD, Vocabulary
from minitransformer.tasks.language_modelling import (
    LanguageModelling,
    LanguageModellingData,
    load_texts,
    stream_of,
    windows,
)
from minitransformer.training.progress import Progress


def task_of(recipe, examples=((TEXT,),)):
    vocabulary = CharacterVocabulary.train([TEXT])
    progress = Progress(io.StringIO())
    return LanguageModelling(
        recipe, {"vocabulary": vocabulary}, list(examples), [(TEXT[:50],)], progress
    )


def test_windows_say_what_follows_each_token():
    batch = windows(np.array([3, 7, 8, PAD, 3], np.int32), np.array([0, 1]), 3)
    assert batch.ids.tolist() == [[3, 7, 8], [7, 8, PAD]]
    assert batch.labels.tolist() == [[7, 8, PAD], [8, PAD, 3]]
    assert batch.num_tokens == 4


def test_where_nothing_is_padding_the_first_id_counts_as_any():
    batch = windows(np.array([3, 7, 8, PAD, 3], np.int32), np.array([0, 1]), 3, pad_id=-1)
    assert batch.num_tokens == 6
    assert [part.num_tokens for part in batch.split(2)] == [3, 3]


def test_a_validation_has_each_token_once_and_none_that_is_not_there(tmp_path):
    task = task_of(recipe_for(tmp_path))
    said = [batch.labels for batch in task.validation_batches]
    assert [ids.shape for ids in said] == [(4, 12), (1, 3)]
    stream = stream_of(CharacterVocabulary.train([TEXT]), [(TEXT[:50],)])
    np.testing.assert_array_equal(np.concatenate([ids.reshape(-1) for ids in said]), stream[1:])


def test_a_stream_has_an_end_symbol_around_each_text():
    stream = stream_of(CharacterVocabulary("ab"), [("ab",), ("b",)])
    assert stream.tolist() == [EOS, 4, 5, EOS, 5, EOS]


def test_a_single_token_without_marks_is_too_little_to_say_something(monkeypatch):
    monkeypatch.setattr(CharacterVocabulary, "ends", ())
    with pytest.raises(CorpusError, match="this text is a single token"):
        stream_of(CharacterVocabulary("ab"), [("a",)])


def test_an_epoch_has_each_token_at_most_once_and_nearly_all_but_not_in_their_order(tmp_path):
    task = task_of(recipe_for(tmp_path))
    task.stream = np.arange(4, 504)
    first = np.concatenate([batch.ids[:, 0] for batch in task.batches(0)])
    assert (np.diff(first) < 0).any()
    said = np.concatenate([batch.labels.reshape(-1) for batch in task.batches(0)])
    assert len(set(said)) == len(said) == sum(batch.num_tokens for batch in task.batches(0))
    assert 500 - 2 * 12 < len(said) < 500


def test_epochs_begin_their_windows_elsewhere_and_have_as_many(tmp_path):
    task = task_of(recipe_for(tmp_path))
    rows = [
        {tuple(row) for batch in task.batches(epoch) for row in batch.ids.tolist()}
        for epoch in (0, 1, 0)
    ]
    assert rows[0] == rows[2]
    assert not rows[0] & rows[1]
    counts = {len(list(task.batches(epoch))) for epoch in range(20)}
    assert counts == {task.num_batches(0)}


def test_a_batch_has_as_many_windows_as_its_tokens_allow(tmp_path):
    shapes = {b.ids.shape for b in list(task_of(recipe_for(tmp_path)).batches(0))[:-1]}
    assert shapes == {(10, 12)}


def test_a_text_shorter_than_the_context_is_one_window(tmp_path):
    task = task_of(recipe_for(tmp_path), [("abcdefg",)])
    (batch,) = task.batches(5)
    assert batch.ids.shape == (1, 8)
    assert batch.ids[0, 0] == EOS == batch.labels[0, -1]


def test_bits_per_character_are_those_per_token_where_tokens_are_characters(tmp_path):
    scores = task_of(recipe_for(tmp_path)).validate(AlwaysSays(np.zeros(64)))
    assert scores["bits_per_character"] == pytest.approx(6)


def test_a_file_is_cut_at_a_line_and_its_end_validates(tmp_path):
    data = recipe_for(tmp_path).data
    ((text,),), ((held_out,),) = load_texts(data)
    assert text + held_out == TEXT
    assert text.endswith("\n")
    assert 0.85 < len(text) / len(TEXT) <= 0.9


def test_of_subwords_each_line_is_a_text(tmp_path):
    data = recipe_for(tmp_path, TEXT.replace("\n", "\n\n"), unit="subwords").data
    texts, held_out = load_texts(data)
    assert texts[0] == ("line 0 says a",)
    assert len(texts) + len(held_out) == 40
    vocabulary = Vocabulary.train([text for (text,) in texts], 40)
    assert vocabulary.decode(stream_of(vocabulary, texts)[1:]) == "line 0 says a"


def test_of_pairs_the_targets_are_learned(monkeypatch):
    from minitransformer.tasks import splits

    pairs = {"train": [("eins", "one")], "validation": [("zwei", "two")]}
    monkeypatch.setattr(splits, "toy_corpus", lambda: pairs)
    assert load_texts(LanguageModellingData(corpus="toy")) == ([("one",)], [("two",)])


@pytest.mark.parametrize("text", ["0123456789" * 5, "ab\n" + "0123456789" * 5])
def test_a_file_without_a_line_end_to_cut_at_is_cut_all_the_same(text, tmp_path):
    ((part,),), ((held_out,),) = load_texts(recipe_for(tmp_path, text).data)
    assert part + held_out == f"{text}\n"
    assert 5 <= len(held_out) <= 6


@pytest.mark.parametrize("content", ["", "\n \n"])
@pytest.mark.parametrize("side", ["train", "validation"])
def test_pairs_without_text_are_refused(content, side, tmp_path):
    recipe = recipe_for(tmp_path, content, text="", corpus="files")
    (tmp_path / "other.txt").write_text(TEXT, encoding="utf-8")
    for split in ("train", "validation"):
        for part in ("source", "target"):
            name = "text.txt" if split == side else "other.txt"
            recipe = recipe.with_value(f"{split}_{part}", str(tmp_path / name))
    with pytest.raises(CorpusError, match="too little text"):
        load_texts(recipe.data)
