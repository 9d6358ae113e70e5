import math
import signal
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from run_files import contents
from tiny_run import record, tiny_recipe, tiny_trainer, trained

from minitransformer import Transformer, TransformerConfig
from minitransformer.core.interrupts import Stopped
from minitransformer.data.text.batches import make_batches
from minitransformer.data.text.characters import save_vocabulary
from minitransformer.data.text.corpus import CorpusError
from minitransformer.data.text.vocabulary import Vocabulary
from minitransformer.inference.trained_on_text import OF_TEXT
from minitransformer.inference.translator import Translator
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks import splits
from minitransformer.tasks.splits import load_split
from minitransformer.tasks.task import one_pass
from minitransformer.tasks.translation import TranslationData
from minitransformer.training import session
from minitransformer.training.recipe import Recipe, RecipeError


def pairs_of(recipe, split):
    return load_split(recipe.data, split)


def with_text(folder, change):
    """Another text to train on, made of what is there and the name of its side."""
    for side in ("source", "target"):
        path = folder / "corpus" / f"train.{side}"
        path.write_text(change(path.read_text(), side))


# Data


def test_the_toy_corpus_is_split_as_its_grammar_says_and_goes_in_both_directions(monkeypatch):
    corpus = {"train": [("eins", "one")], "test": [("zwei", "two")]}
    monkeypatch.setattr(splits, "toy_corpus", lambda: corpus)  # making it takes seconds
    for split, pairs in corpus.items():
        assert load_split(TranslationData(corpus="toy"), split) == pairs
    other_way = TranslationData(corpus="toy", languages="en-de")
    assert load_split(other_way, "train") == [("one", "eins")]
    with pytest.raises(ValueError, match="languages='fr-en'; choose 'de-en' or 'en-de'"):
        load_split(TranslationData(corpus="toy", languages="fr-en"), "train")
    with pytest.raises(ValueError, match="split='dev'; choose 'train' or 'test'"):
        load_split(TranslationData(corpus="toy"), "dev")


def test_multi30k_is_read_from_the_local_folder_or_downloaded(monkeypatch):
    monkeypatch.setattr(splits, "load_multi30k", lambda *arguments: arguments)
    assert load_split(TranslationData(data_dir="here"), "train") == ("train", "here", "de-en")
    test = load_split(TranslationData(languages="fr-cs"), "test_2016_flickr")
    assert test == ("test_2016_flickr", None, "fr-cs")


def test_files_are_read_in_pairs(tmp_path):
    paths = {}
    for split, side in product(("train", "validation"), ("source", "target")):
        path = tmp_path / f"{split}.{side}"
        path.write_text(f"{split} {side}\n")
        paths[f"{split}_{side}"] = str(path)
    data = TranslationData(corpus="files", **paths)
    assert load_split(data, "train") == [("train source", "train target")]
    assert load_split(data, "validation") == [("validation source", "validation target")]
    with pytest.raises(ValueError, match="split='test'; choose 'train' or 'validation'"):
        load_split(data, "test")
    with pytest.raises(RecipeError, match="leave out languages"):
        load_split(replace(data, languages="en-de"), "train")


# What is read


def test_a_bad_byte_in_the_training_text_costs_its_pair_alone(tmp_path):
    recipe = tiny_recipe(tmp_path / "corpus")
    with_text(tmp_path, lambda text, side: text * 3)
    target = Path(recipe.data.train_target)
    target.write_bytes(target.read_bytes().replace(b"\n", b" \xe4\n", 1))
    report = tiny_trainer(recipe, tmp_path / "run").progress.stream.getvalue()
    said = "120 pairs read, 1 dropped for bytes that are not UTF-8 (line 1), 0 dropped for an empty"
    assert said in report
    with pytest.raises(CorpusError, match=r"train\.target, line 1: byte 0xe4 is not UTF-8"):
        pairs_of(recipe, "train")  # to be scored, where every line counts


def test_a_word_of_100000_letters_is_dropped_before_it_is_cut_at_random(tmp_path):
    recipe = tiny_recipe(tmp_path / "corpus", subword_dropout=0.1)
    with_text(tmp_path, lambda text, side: f"{text}{'bao' * 33_334}\n")
    began = time.process_time()
    trainer = tiny_trainer(recipe, tmp_path / "run")
    assert sum(len(batch.source) for batch in trainer.task.batches(0)) == 40
    assert time.process_time() - began < 10  # and not a minute
    assert "41 pairs encoded, 1 dropped for a side" in trainer.progress.stream.getvalue()


def test_a_folder_with_a_run_of_another_recipe_is_refused_and_left_alone(recipe, tmp_path):
    trained(recipe, tmp_path)
    before = contents(tmp_path)
    for name, value in [("epochs", 4), ("d_ff", 32)]:
        with pytest.raises(RecipeError, match="holds a run of another recipe"):
            tiny_trainer(recipe.with_value(name, value), tmp_path)
    assert contents(tmp_path) == before
    run = tiny_trainer(recipe, tmp_path / "begun").run
    config, stored = run.load_config()
    run.save_config(replace(config, epsilon=1e-6), stored)  # as of a release with other defaults
    with pytest.raises(RecipeError, match="holds a run of another recipe"):
        tiny_trainer(recipe, run.path)


# What is prepared


def test_the_vocabulary_is_learned_from_the_training_split_and_stays_the_run_s(tmp_path):
    recipe = tiny_recipe(tmp_path / "corpus")
    target = Path(recipe.data.train_target)
    target.write_text(target.read_text().upper())
    tiny_trainer(recipe, tmp_path / "run")
    texts = [text for pair in pairs_of(recipe, "train") for text in pair]
    stored = RunFolder(tmp_path / "run", OF_TEXT).attached["vocabulary"]
    assert stored.read_bytes() == Vocabulary.train(texts, 36).model
    other = Vocabulary.train([text + " ba" for text in texts], 36)
    save_vocabulary(stored, other)
    tiny_trainer(recipe, tmp_path / "run")
    assert stored.read_bytes() == other.model


def test_what_is_left_out_is_reported(tmp_path):
    recipe = tiny_recipe(tmp_path / "corpus")
    empty = {"source": "ba\n", "target": "\n"}  # a side of a pair
    with_text(tmp_path, lambda text, side: text + empty[side] + "bao " * 30)
    report = tiny_trainer(recipe, tmp_path / "run").progress.stream.getvalue()
    assert "training data: 42 pairs read, 1 dropped for an empty side, 41 kept" in report
    assert "training: 41 pairs encoded, 1 dropped for a side of more than 20 tokens" in report
    assert "an epoch: 40 pairs in" in report
    assert "validation loss: 6 pairs encoded, 0 dropped" in report
    assert "parameters on cpu" in report


def test_the_training_pairs_are_no_longer_than_the_model_takes(recipe, tmp_path):
    short = recipe.with_value("max_length", 12)
    trainer = tiny_trainer(short.with_value("subword_dropout", 0.9), tmp_path)
    batches = [batch for epoch in range(3) for batch in trainer.task.batches(epoch)]
    widths = [array.shape[1] for b in batches for array in (b.source, b.target)]
    assert max(widths) == 12
    assert max(batch.size for batch in batches) <= 120


def test_subword_dropout_cuts_the_training_text_anew_in_every_epoch(recipe, tmp_path):
    def tokens(p):
        trainer = tiny_trainer(recipe.with_value("subword_dropout", p), tmp_path / str(p))
        return [sum(batch.num_tokens for batch in trainer.task.batches(e)) for e in (0, 1)]

    plain, dropped = tokens(0.0), tokens(0.5)
    assert plain[0] == plain[1] < min(dropped)
    assert dropped[0] != dropped[1]


def test_pairs_that_subword_dropout_made_too_long_are_told_and_logged(tmp_path):
    """Of those that are too long however they are cut, the report at the start tells."""
    recipe = tiny_recipe(tmp_path / "corpus", max_tokens=4, subword_dropout=0.1)
    trainer = trained(recipe, tmp_path / "run")
    report = trainer.progress.stream.getvalue()
    pairs = pairs_of(recipe, "train")
    vocabulary = Vocabulary.load(trainer.run.attached["vocabulary"])
    always = sum(max(len(vocabulary.encode(text)) for text in pair) >= 4 for pair in pairs)
    assert always > 0
    assert f"training: 40 pairs encoded, {always} dropped" in report

    validations = [e for e in trainer.run.log.entries() if e["kind"] == "validation"]
    for entry in validations:
        kept = sum(len(batch.source) for batch in trainer.task.batches(entry["epoch"] - 1))
        assert entry["left_out"] == 40 - always - kept > 0
        words = "training examples left out because they became too long"
        assert f"epoch {entry['epoch']}: {words}: {entry['left_out']}\n" in report


def test_an_epoch_with_all_pairs_says_nothing_of_those_left_out(recipe, tmp_path):
    trainer = trained(recipe, tmp_path)
    assert not any("left_out" in entry for entry in trainer.run.log.entries())
    assert "left out" not in trainer.progress.stream.getvalue()


def test_a_run_keeps_the_shards_it_began_with_on_a_machine_with_more_cores(tmp_path, monkeypatch):
    """The order of sums depends on them, and with it the last bits."""
    recipe = tiny_recipe(tmp_path / "corpus", shards=0)
    monkeypatch.setattr(session, "default_shards", lambda *_: 3)
    trained(recipe, tmp_path / "whole")
    trainer = tiny_trainer(recipe, tmp_path / "moved")
    trainer.progress.stepped = lambda *_: signal.raise_signal(signal.SIGINT)
    with pytest.raises(Stopped):
        trainer.train()
    assert trainer.workers.count == 3

    monkeypatch.setattr(session, "default_shards", lambda *_: 5)
    _, stored = RunFolder(tmp_path / "moved").load_config()
    trainer = tiny_trainer(Recipe.from_dict(stored), tmp_path / "moved")
    assert (trainer.step, trainer.workers.count) == (1, 3)
    trainer.train()
    assert record(tmp_path / "moved") == record(tmp_path / "whole")


def test_a_validation_scores_translations_of_its_sources(recipe, tmp_path, monkeypatch):
    sources, references = zip(*pairs_of(recipe, "validation"), strict=True)
    asked = []

    def translate(self, texts, **options):
        asked.append((texts, options))
        return [*references[:3], *["?"] * (len(texts) - 3)]

    monkeypatch.setattr(Translator, "translate", translate)
    scores = tiny_trainer(recipe, tmp_path).task.validate(
        Transformer(TransformerConfig(36, 36, 8, 2))
    )
    assert asked == [(list(sources), {"beam_size": 1})]
    assert scores["exact_match"] == 50
    assert 0 < scores["bleu"] < 100
    assert 0 < scores["chrf2"] < 100


def test_the_nll_of_a_validation_is_that_of_all_tokens_without_dropout():
    config = TransformerConfig.preset("toy", 20, d_model=8, num_heads=2, d_ff=16, dropout=0.5)
    model = Transformer(config, dtype=np.float64)
    rng = np.random.default_rng(0)
    pairs = [tuple(rng.integers(4, 20, n).tolist() for _ in range(2)) for n in (1, 2, 5, 9)]
    total = tokens = 0
    for batch in make_batches(pairs, 20):
        logits, _ = model.forward(batch.source, batch.target)
        log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        for b, t in zip(*np.nonzero(batch.labels), strict=True):
            total -= log_p[b, t, batch.labels[b, t]]
            tokens += 1
    assert tokens == 1 + 2 + 5 + 9 + 4
    for max_tokens in (20, 1000):
        nll, _ = one_pass(model, make_batches(pairs, max_tokens))
        assert math.isclose(nll, total / tokens, rel_tol=1e-12)
