"""One Trainer, run folder, command line and search for every model: all that a new one needs."""

import re
import tomllib

import numpy as np
import pytest
from bag_of_strings import BagOfStringsConfig
from bag_of_words import BagOfWords, BagOfWordsConfig
from tiny_run import record, tiny_recipe, trained, trained_in_two
from tiny_translator import captions, write_recipe

from minitransformer import decoding
from minitransformer.cases.case import (
    BATCH,
    LABELS,
    SOURCE,
    TARGET,
    B,
    D,
    V,
)
from minitransformer.cases.models import ModelLoss
from minitransformer.commands.cli import main
from minitransformer.data.text.vocabulary import BOS, EOS
from minitransformer.decoding import states
from minitransformer.decoding.whole import WholeDecoder
from minitransformer.gradcheck import check_module
from minitransformer.inference.translator import Translator
from minitransformer.models.registry import KINDS, config_class, new_model
from minitransformer.runs.checkpoint.file import RunError
from minitransformer.runs.run_folder import RunFolder
from minitransformer.training.recipe import Recipe, RecipeError

KIND = BagOfWordsConfig.kind
MODEL = f"""[model]
kind = "{KIND}"
num_maps = 2
d_model = 32
dropout = 0.0
max_length = 40

"""
every_tying = pytest.mark.parametrize("tying", ["three-way", "two-way", "none"])


@pytest.fixture(scope="module", autouse=True)
def _known():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(KINDS, KIND, "bag_of_words:BagOfWords")
        yield


def small_bag(tying="three-way", **fields):
    source = V if tying == "three-way" else V + 2
    return BagOfWordsConfig(source, V, D, tying=tying, max_length=8, **fields)


# The model


@every_tying
def test_its_gradients_are_those_of_its_loss(tying):
    model = new_model(small_bag(tying, num_maps=2, dropout=0.2), seed=3)
    assert type(model) is BagOfWords
    report = check_module(
        ModelLoss(model), SOURCE, TARGET, LABELS, directions=3, tolerance=1e-7, seed=1
    )
    assert report.right, str(report)


@every_tying
def test_its_size_is_known_however_it_is_tied(tying):
    config = small_bag(tying, num_maps=3)
    assert config.num_parameters() == new_model(config).num_parameters()


def test_a_replica_and_another_type_are_there_without_a_line_of_its_own():
    model = new_model(small_bag(dropout=0.0), dtype=np.float64)
    replica = model.replica()
    (loss, _), cache = replica.loss(BATCH, smoothing=0.1)
    replica.loss_backward(1.0, cache)
    assert np.shares_memory(replica.flat.data, model.flat.data)
    assert loss.dtype == np.float64
    assert replica.flat.grad.any()
    assert not model.flat.grad.any()


# The search


def test_greedy_says_what_is_most_probable_after_all_that_was_said():
    model = new_model(small_bag(), seed=5, dtype=np.float64)
    for source, found in zip(SOURCE, decoding.greedy(model, SOURCE), strict=True):
        said = [BOS]
        for token in [*found.ids, EOS][: len(found.ids) + found.finished]:
            logits, _ = model.forward(source[source > 0][None], np.array([said]))
            logits[..., [0, BOS]] = -np.inf
            assert logits[0, -1].argmax() == token
            said.append(token)
        assert len(said) > 1


def test_a_memory_of_several_arrays_goes_with_its_sentences():
    """One of three sentences leaves, and of two hypotheses the other has the first place."""
    model = new_model(small_bag(), dtype=np.float64)
    decoder = states.decoder_for(model, SOURCE)
    first = decoder.step(np.full((B, 1), BOS))  # (3, 1, V)
    decoder.select(np.zeros((B, 2), dtype=int))
    decoder.step(np.array([[4, 5], [6, 7], [8, 9]]))
    decoder.select(np.array([[1, 0]] * B))
    decoder.keep(np.array([0, 2]))
    logits = decoder.step(np.array([[3, 3], [3, 3]]))  # (2, 2, V)
    assert first.shape == (B, 1, V)
    for row, source, hypotheses in ((0, 0, (5, 4)), (1, 2, (9, 8))):
        for place, token in enumerate(hypotheses):
            ids = SOURCE[source : source + 1]
            expected, _ = model.forward(ids[:, (ids > 0)[0]], np.array([[BOS, token, 3]]))
            np.testing.assert_allclose(logits[row, place], expected[0, -1], rtol=1e-12)


class Counted(WholeDecoder):
    steps = 0

    def step(self, ids):
        Counted.steps += 1
        return super().step(ids)


def test_a_kind_that_has_a_state_of_its_own_is_searched_with_that(monkeypatch):
    model = new_model(small_bag())
    expected = decoding.beam_search(model, SOURCE)
    assert Counted.steps == 0
    monkeypatch.setattr(type(model), "decoding", f"{__name__}:Counted", raising=False)
    assert decoding.beam_search(model, SOURCE) == expected
    assert Counted.steps > 0


# The training, and what it leaves


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    """That of a tiny Transformer, whose common fields stay."""
    return tiny_recipe(tmp_path_factory.mktemp("corpus"), kind=KIND, d_model=8)


def test_a_resumed_run_equals_an_uninterrupted_one(recipe, tmp_path):
    trained(recipe, tmp_path / "whole")
    trained_in_two(recipe, tmp_path / "cut", steps=2)
    assert record(tmp_path / "cut") == record(tmp_path / "whole")


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """A run of the command line, by a recipe that names the kind."""
    folder = tmp_path_factory.mktemp("captions")
    recipe = write_recipe(folder)
    text = re.sub(r"\[model\].*?\n\n", MODEL, recipe.read_text(encoding="utf-8"), flags=re.DOTALL)
    recipe.write_text(text, encoding="utf-8")
    assert main(["train", str(recipe), "--run-folder", str(folder / "run"), "--num-maps", "1"]) == 0
    return folder / "run"


def test_its_run_folder_tells_what_it_is(run_folder, capsys):
    config, _ = RunFolder(run_folder).load_config()
    assert (config.kind, config.d_model, config.num_maps) == (KIND, 32, 1)
    assert Recipe.of_run(RunFolder(run_folder)).model["kind"] == KIND
    assert main(["info", str(run_folder)]) == 0
    assert f"kind: {KIND}\nparameters: {config.num_parameters():,}\n" in capsys.readouterr().out


@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_command_line_translates_with_it(run_folder, beam_size, capsys):
    source, reference = captions()[0]
    assert main(["translate", str(run_folder), source, "--beam-size", str(beam_size)]) == 0
    said = capsys.readouterr().out.strip()
    assert Translator.load(run_folder).translate([source], beam_size=beam_size) == [said]
    assert set(said.split()) & set(reference.split())  # it has learned words, if no order


def test_without_attention_there_is_none_to_draw(run_folder, tmp_path, capsys):
    picture = tmp_path / "attention.png"
    assert main(["translate", str(run_folder), "wir", "--attention", str(picture)]) == 1
    assert f"a model of kind '{KIND}' has no attention" in capsys.readouterr().err
    assert not picture.exists()


# Its fields


def test_annotations_may_be_strings(monkeypatch):
    """Which ``from __future__ import annotations`` makes of them."""
    kind = BagOfStringsConfig.kind
    monkeypatch.setitem(KINDS, kind, "bag_of_strings:BagOfStrings")
    for wrong in (-3, 0, 2.0, True, "2"):
        with pytest.raises(ValueError, match=f"num_maps={wrong!r} must be (> 0|a whole number)"):
            BagOfStringsConfig(V, V, num_maps=wrong)
    recipe = Recipe().with_value("kind", kind).with_value("num_maps", 2).with_value("sharpness", 3)
    assert (recipe.model["num_maps"], recipe.model["sharpness"]) == (2, 3.0)
    with pytest.raises(RecipeError, match="num_maps='2' must be a whole number"):
        recipe.with_value("num_maps", "2")


# Its name


def test_an_option_of_another_kind_is_refused_with_those_there_are(recipe):
    with pytest.raises(RecipeError, match=f"'{KIND}' has no num_heads, .*; leave it .* d_model"):
        recipe.with_value("num_heads", 4)
    with pytest.raises(RecipeError, match=f"'transformer' has no num_maps, which is for {KIND}; "):
        Recipe().with_value("num_maps", 4)


def test_help_says_whose_an_option_is_and_whose_a_default(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit, match="0"):
        main(["train", "--help"])
    said = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert f"--kind TEXT which model: {', '.join(KINDS)} (default: transformer)" in said
    (d_model,) = (line for line in said if line.startswith("--d-model N "))
    assert "(default: 512 for transformer, " in d_model
    assert d_model.endswith(f"; 12 for {KIND})")
    maps = "linear maps, one after the other, in the decoder"
    assert f"--num-maps N {maps}; of {KIND} (default: 1)" in said


def test_a_recipe_that_is_printed_names_its_kind(recipe):
    printed = tomllib.loads(recipe.as_toml())
    assert Recipe.from_dict(printed) == recipe
    assert printed["model"]["kind"] == KIND


def test_another_kind_keeps_what_was_chosen_and_has_its_own_defaults():
    chosen = Recipe().with_value("dropout", 0.3).with_value("d_ff", 64)
    changed = chosen.with_value("kind", KIND)
    assert changed.model == Recipe.from_dict({"model": {"kind": KIND, "dropout": 0.3}}).model
    assert changed.model["d_model"] == 12
    assert "d_ff" not in changed.model


def test_a_kind_that_is_not_there_is_refused_with_those_there_are(tmp_path):
    words = f"kind='mamba'; choose 'transformer', .*{KIND}"
    with pytest.raises(ValueError, match=words):
        config_class("mamba")
    with pytest.raises(RecipeError, match=words):
        Recipe.from_dict({"model": {"kind": "mamba"}})
    run = RunFolder(tmp_path)
    run.config.write_text('{"model": {"kind": "mamba"}, "recipe": {}}')
    with pytest.raises(RunError, match=rf"config\.json is damaged: {words}"):
        run.load_config()
