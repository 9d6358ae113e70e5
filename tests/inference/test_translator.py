import dataclasses

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits
from tiny_translator import captions, train_once

from minitransformer import CPU, Device
from minitransformer.core.twins import Twin
from minitransformer.core.workers import available_cores
from minitransformer.inference import translator as translator_module
from minitransformer.inference.translator import Translator
from minitransformer.layers.layer_norm import layer_norm

GERMAN, ENGLISH = map(list, zip(*captions(), strict=True))


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    return train_once(tmp_path_factory)


@pytest.fixture(scope="module")
def translator(run_folder):
    return Translator.load(run_folder, "cpu")


@pytest.mark.parametrize("beam_size", [1, 4])
def test_what_was_learned_by_heart_is_translated_without_a_mistake(translator, beam_size):
    """With the parameters chosen at the end."""
    assert translator.translate(GERMAN, beam_size=beam_size) == ENGLISH
    assert translator.origin.startswith(("epoch ", "mean of epochs "))


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_score_is_divided_by_the_length_penalty_that_is_asked_for(translator, beam_size):
    (plain, _), (best, _) = (
        [best for best, *_ in translator.translations(GERMAN[:2], beam_size=beam_size, alpha=alpha)]
        for alpha in (0.0, 1.0)
    )
    assert plain.pieces == best.pieces
    assert best.score == pytest.approx(plain.score / ((5 + len(best.pieces)) / 6))


def test_unless_told_otherwise_it_searches_as_the_paper_does(translator, monkeypatch):
    asked, search = [], translator_module.translate_ids

    def noted(*given, **options):
        asked.append((options["beam_size"], options["alpha"]))
        return search(*given, **options)

    monkeypatch.setattr(translator_module, "translate_ids", noted)
    translator.translate(GERMAN[:1])
    translator.translations(GERMAN[:1])
    assert asked == 2 * [(4, 0.6)]


def test_a_beam_may_be_as_wide_as_the_vocabulary(translator):
    assert translator.translate(GERMAN[:1], beam_size=len(translator.vocabulary)) == ENGLISH[:1]


def test_a_blank_text_has_a_blank_translation_and_moves_no_other(translator):
    texts = ["", GERMAN[0], " \t\xa0", GERMAN[1]]
    assert translator.translate(texts) == ["", ENGLISH[0], "", ENGLISH[1]]
    ((blank,), *_) = translator.translations(texts, attention=True)
    assert (blank.score, blank.finished, blank.attention) == (0, True, None)


def test_texts_are_a_list_which_may_be_empty(translator):
    assert translator.translate([]) == []
    with pytest.raises(TypeError, match=r"give a list of texts, such as \[text\]"):
        translator.translate(GERMAN[0])


def test_a_text_longer_than_the_model_takes_is_cut_and_marked(translator):
    room = translator.model.config.max_length - 1  # one is for the end symbol
    text = "e" * (2 * room)
    ids = translator.vocabulary.encode(text)
    fitting = translator.vocabulary.decode(ids[:room])
    (cut,), (whole,) = translator.translations([text, fitting])
    assert len(ids) > room
    assert (cut.truncated, whole.truncated) == (True, False)
    pieces = translator.vocabulary.pieces([*ids[:room], 3])
    assert cut.source_pieces == whole.source_pieces == pieces
    assert cut.text == whole.text


def test_unknown_characters_are_translated_to_something(translator):
    ((translation,),) = translator.translations(["猫犬"])
    assert translation.source_pieces == ["▁", "<unk>", "</s>"]
    assert translation.text


def test_the_n_best_are_different_and_the_best_comes_first(translator):
    ((*best,),) = translator.translations([GERMAN[5]], n_best=3)
    assert best[0].text == ENGLISH[5]
    assert len({translation.text for translation in best}) == 3
    assert [t.score for t in best] == sorted((t.score for t in best), reverse=True)


def test_attention_has_a_row_for_each_piece_and_a_column_for_each_source_piece(translator):
    found = translator.translations(GERMAN[:2], attention=True)
    for text, translation in zip(GERMAN, (best[0] for best in found), strict=False):
        pieces, source_pieces = translation.pieces, translation.source_pieces
        assert "".join(pieces).replace("▁", " ") == f" {translation.text}</s>"
        assert "".join(source_pieces).replace("▁", " ") == f" {text}</s>"
        assert translation.attention.shape == (1, 2, len(pieces), len(source_pieces))
        np.testing.assert_allclose(translation.attention.sum(axis=-1), 1, rtol=1e-5)


def test_a_translation_cut_off_has_no_end_symbol(run_folder):
    translator = Translator.load(run_folder, "cpu")
    model = translator.model
    model.config = dataclasses.replace(model.config, max_length=3)
    ((cut,),) = translator.translations([GERMAN[0]], attention=True)
    assert not cut.finished
    assert len(cut.pieces) == cut.attention.shape[2] == 3
    assert "</s>" not in cut.pieces


# How it computes


@pytest.mark.parametrize("options", [dict(accelerate=False), dict(threads=1), dict(threads=3)])
def test_how_it_computes_changes_no_translation(run_folder, options):
    translator = Translator.load(run_folder, "cpu", **options)
    assert translator.translate(GERMAN * 3, beam_size=1) == ENGLISH * 3


@pytest.mark.parametrize("options", [dict(), dict(accelerate=True), dict(accelerate=False)])
def test_twins_are_awake_while_it_translates_unless_switched_off(run_folder, options, monkeypatch):
    calls = []

    def forward(*args):
        calls.append(args)
        return layer_norm.__wrapped__(*args)

    monkeypatch.setitem(layer_norm.twins, "numpy", Twin(forward, None))
    translator = Translator.load(run_folder, "cpu", threads=2, **options)
    assert translator.translate(GERMAN[:2], beam_size=1) == ENGLISH[:2]
    assert bool(calls) == options.get("accelerate", True)


def test_threads_side_by_side_have_a_blas_of_one_thread_each(translator, monkeypatch):
    def blas_threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    def record(model, sources, **options):
        during[:] = blas_threads()
        return [[None]] * len(sources)

    during = []
    monkeypatch.setattr(translator_module, "translate_ids", record)
    monkeypatch.setattr(Translator, "_translated", lambda *args: None)
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        for threads, expected in ((2, [1] * len(before)), (1, before)):
            of_so_many = Translator(translator.model, translator.vocabulary, threads=threads)
            of_so_many.translations(GERMAN[:1])
            assert during == expected
            assert blas_threads() == before


def test_there_is_a_thread_for_each_core_and_one_for_a_gpu(translator, monkeypatch):
    def workers(**options):
        return Translator(translator.model, translator.vocabulary, **options).workers.count

    assert workers() == available_cores()
    monkeypatch.setattr(translator.model, "device", Device("cuda:0", None))
    assert workers() == 1
    monkeypatch.setattr(translator.model, "device", CPU)
    assert workers(threads=5) == 5
