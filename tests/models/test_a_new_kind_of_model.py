"""One Trainer, run folder, command line and search for every model: all that a new one needs."""

import re
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import kinds
import pytest
from bag_of_words import BagOfWords, BagOfWordsConfig
from tiny_run import tiny_recipe
from tiny_translator import captions, write_recipe

from minitransformer.cases.case import V
from minitransformer.commands.cli import main
from minitransformer.inference.translator import Translator
from minitransformer.models.registry import KINDS, config_class
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


@pytest.fixture(scope="module", autouse=True)
def _known():
    with pytest.MonkeyPatch.context() as patch:
        kinds.known(patch)
        yield


# The training, and what it leaves


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    """That of a tiny Transformer, whose common fields stay."""
    return tiny_recipe(tmp_path_factory.mktemp("corpus"), kind=KIND, d_model=8)


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
    assert (
        f"kind: {KIND}\ntrains: {config.num_parameters():,} parameters\n" in capsys.readouterr().out
    )


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


@dataclass(frozen=True)
class BagOfStringsConfig(BagOfWordsConfig):
    """Annotated as ``from __future__ import annotations`` makes it."""

    kind: "ClassVar[str]" = "bag-of-strings"

    _: "KW_ONLY"
    num_maps: "int" = 1
    sharpness: "float" = 1.0


class BagOfStrings(BagOfWords):
    Config = BagOfStringsConfig


def test_annotations_may_be_strings(monkeypatch):
    kind = BagOfStringsConfig.kind
    monkeypatch.setitem(KINDS, kind, f"{__name__}:BagOfStrings")
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
