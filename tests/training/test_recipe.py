import json
import math
import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from tiny_run import config_for
from tiny_translator import status_of

from minitransformer import TransformerConfig
from minitransformer.core.libraries import imported
from minitransformer.core.settings import Settings
from minitransformer.data.images.batches import PictureBatch
from minitransformer.data.images.shapes import shapes_corpus
from minitransformer.models.registry import KINDS, config_class, new_model
from minitransformer.models.token_config import TokenConfig
from minitransformer.tasks.language_modelling import LanguageModellingData
from minitransformer.tasks.splits import ParallelData
from minitransformer.tasks.task import EXPLODED, TASKS, task_class
from minitransformer.tasks.translation import TranslationData, longest_side
from minitransformer.training.config import TrainingConfig
from minitransformer.training.recipe import Recipe, RecipeError, recipe_names, settings

RECIPES = recipe_names()
PICTURES = [
    name
    for name in RECIPES
    if config_class(Recipe.load(name).model["kind"]).task == "classification"
]
TOKENS = [kind for kind in KINDS if issubclass(config_class(kind), TokenConfig)]


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_can_be_trained(name):
    recipe = Recipe.load(name)
    config = config_class(recipe.model["kind"])
    if name not in ("gpt", "bert", "fine-tune"):  # whose text is still to be named
        task_class(config).require_sense(recipe)
    if config.task == "translation":
        assert 2 <= longest_side(recipe) <= recipe.model["max_length"]
    assert recipe.training.epochs >= 1
    if config.kind in TOKENS:
        assert config_for(recipe, recipe.data.vocabulary_size)  # makes sense
    if config.task == "classification":
        assert recipe.model_config(height=28, width=28, channels=1, num_classes=10)
    corpora = dict.fromkeys(("toy", "tagger", "classifier"), "toy")
    corpora |= dict.fromkeys(("gpt", "bert", "tune"), "text") | {"shapes": "shapes"}
    others = "fashion-mnist" if config.task == "classification" else "multi30k"
    assert recipe.data.corpus == corpora.get(name.split("-")[-1], others)


@pytest.mark.parametrize("name", PICTURES)
def test_a_recipe_for_pictures_begins_with_a_loss_that_training_does_not_give_up(name):
    config = Recipe.load(name).model_config(height=28, width=28, channels=1, num_classes=10)
    some = shapes_corpus()["train"][:40]
    pictures = (some.pictures - np.float32(128)) / 92  # normalised, nearly
    model = new_model(config, seed=1)
    (loss, _), _ = model.loss(PictureBatch(pictures, some.labels), np.random.default_rng(0))
    assert loss < EXPLODED * math.log(10)


def test_the_base_recipe_is_the_model_of_the_paper():
    recipe = Recipe.load("base")
    assert config_for(recipe, 8000) == TransformerConfig.preset("base", 8000)
    assert recipe.training.schedule == "noam"
    assert recipe.training.warmup_steps == 4000


@pytest.mark.parametrize(("end", "transformer"), [("-toy", "toy"), ("", "multi30k-cpu")])
@pytest.mark.parametrize("name", ["gru", "gru-attention", "convolution", "restricted"])
def test_another_architecture_has_about_as_many_parameters(name, end, transformer):
    recipes = Recipe.load(name + end), Recipe.load(transformer)
    sizes = [config_for(r, r.data.vocabulary_size).num_parameters() for r in recipes]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.1)


def test_a_recipe_without_changes_has_the_defaults_of_its_parts():
    recipe = Recipe()
    recipe.as_dict()["model"]["d_model"] = 2  # of a copy
    assert recipe.data == TranslationData()
    assert recipe.training == TrainingConfig()
    assert config_for(recipe, 100) == TransformerConfig(100, 100)


def test_no_field_stands_in_two_sections():
    parts = (TranslationData, TransformerConfig, TrainingConfig)
    names = [f.name for part in parts for f in fields(part)]
    assert len(names) == len(set(names))
    assert {*names, "kind"} == {*settings(), *TransformerConfig.of_data, "options"}


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_survives_json(name):
    recipe = Recipe.load(name).with_value("peak_learning_rate", 0.123)
    sections = json.loads(json.dumps(recipe.as_dict()))
    assert Recipe.from_dict(sections) == recipe
    config = config_class(recipe.model["kind"])
    assert set(sections["model"]) == {"kind", *(f.name for f in fields(config))} - {*config.of_data}


def test_one_value_replaces_that_of_any_section_and_nothing_else():
    recipe = Recipe.load("toy")
    changed = recipe.with_value("max_tokens", 9).with_value("d_ff", 7).with_value("epochs", 3)
    assert [changed.values()[name] for name in ("max_tokens", "d_ff", "epochs")] == [9, 7, 3]
    assert config_for(changed, 500).d_ff == 7
    different = [name for name in settings() if changed.values()[name] != recipe.values()[name]]
    assert sorted(different) == ["d_ff", "epochs", "max_tokens"]
    assert recipe == Recipe.load("toy")


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "own.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_a_file_is_read_like_a_recipe_of_the_package(file):
    """With or without a byte order mark."""
    text = '[data]\ntrain_source = "a.de"\n[training]\nclip_norm = 0\npeak_learning_rate = 1\n'
    for mark, of_type in (("", str), ("\ufeff", Path)):
        recipe = Recipe.load(of_type(file(f"{mark}{text}")))
        assert recipe.data.train_source == "a.de"
        assert recipe.training == TrainingConfig(peak_learning_rate=1.0, clip_norm=0.0)
        assert type(recipe.training.peak_learning_rate) is float


@pytest.mark.parametrize(("text", "message"), [
    ("[training]\nepoch = 3", "there is no field epoch; did you mean epochs?"),
    ("[training]\nzzz = 3", "there is no field zzz; the fields are corpus, .*seed"),
    ("[data]\nepochs = 3", r"\[data\] has no field epochs; move it to \[training\]"),
    ("[modle]\nd_ff = 3", r"'modle' is no section; the sections are \[data\], \[model\] and"),
    ("epochs = 3", r"'epochs' is no section; the sections are"),
    ("training = 3", r"'training' is no section; the sections are"),
    ("[model]\npad_id = 3", "there is no field pad_id"),
    ('[training]\nepochs = "ten"', "epochs='ten' must be a whole number"),
    ("[training]\nepochs = 2.0", "epochs=2.0 must be a whole number"),
    ("[training]\nepochs = true", "epochs=True must be a whole number"),
    ("[model]\ndropout = true", "dropout=True must be a number"),
    ("[model]\nnorm = 1", "norm=1 must be text"),
    ("[training]\nepochs = 0", "epochs=0 must be > 0"),
    ('[data]\ncorpus = "wmt"', "corpus='wmt'; choose 'toy', 'multi30k' or 'files'"),
    ("[data]\nmax_tokens = 0", "max_tokens=0 must be > 0"),
    ("[training\nepochs = 1", "at line 1"),
])  # fmt: skip
def test_an_error_in_a_file_names_the_file_and_says_what_to_do(file, text, message):
    path = file(text)
    with pytest.raises(RecipeError, match=message) as caught:
        Recipe.load(path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(("content", "says"), [
    (b"\xff\xfe\x00", "utf-8"), (b"x = " + b"[" * 100_000, ""), (b"# nothing\n", "it is empty"),
], ids=["no text", "brackets without end", "as of a command that failed"])  # fmt: skip
def test_a_file_that_holds_no_recipe_is_refused(content, says, file):
    with pytest.raises(RecipeError, match=rf"own\.toml: .*{says}"):
        Recipe.load(file(content))


NUMBERS = [name for name, setting in settings().items() if setting.type in (int, float)]
COUNTS = [name for name, setting in settings().items() if setting.type is int]
RATES = [name for name, setting in settings().items() if setting.type is float]
NEVER_A_NUMBER = ["nan", "true", '"3"', "[1]", "{}", "-1", "-1.0", "-inf", "9" * 400]
NEVER_A_NUMBER += ["-" + "9" * 400]


@pytest.mark.parametrize(("name", "value"), [
    *((name, value) for name in NUMBERS for value in NEVER_A_NUMBER),
    *((name, value) for name in COUNTS for value in ("1.5", "inf", "1e400", "0x" + "f" * 5000)),
    *((name, value) for name in RATES for value in ("inf", "1e400")),
], ids=lambda given: given[:20])  # fmt: skip
def test_what_is_no_value_of_a_number_is_refused_by_its_name(file, name, value):
    path = file(f"[{settings()[name].section}]\n{name} = {value}\n")
    with pytest.raises(ValueError, match=rf"\b{name}\b") as refused:
        config_for(Recipe.load(path), 100)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", NUMBERS)
def test_the_same_is_refused_on_the_command_line(name, capsys):
    """And before any work: the data of this recipe are not there."""
    flag = f"--{name.replace('_', '-')}"
    for value in ("nan", "-1", "true", "", "9" * 400):
        arguments = ["train", "multi30k", "--data-dir", "/no/such", "--dry-run", f"{flag}={value}"]
        assert status_of(arguments) in (1, 2)
        last = capsys.readouterr().err.splitlines()[-1]
        assert last.startswith("minitransformer")
        assert name in last or flag in last


@pytest.mark.parametrize("sections", [None, 3, "model", ["model"], {"model": 3}, {"model": None}])
def test_what_is_no_table_of_sections_is_refused(sections):
    with pytest.raises(RecipeError, match="section"):
        Recipe.from_dict(sections)


@pytest.mark.parametrize(("name", "hint"), [("tyo", r"; did you mean toy\?"), ("none", "")])
def test_an_unknown_recipe_is_refused_with_the_known_ones(name, hint):
    says = f"no file '{name}', and the recipes of the package are {', '.join(RECIPES)}{hint}$"
    with pytest.raises(RecipeError, match=says):
        Recipe.load(name)


def test_a_side_of_a_pair_is_as_long_as_both_data_and_model_allow():
    recipe = Recipe().with_value("max_tokens", 50)
    assert longest_side(recipe.with_value("max_length", 60)) == 50
    assert longest_side(recipe.with_value("max_length", 40)) == 40


# The fields of a training

ABOVE_ZERO = ["epochs", "batch_tokens", "accumulate", "warmup_steps", "log_every", "save_every"]
ABOVE_ZERO += ["average", "peak_learning_rate"]
MAY_BE_ZERO = ["consistency", "clip_norm", "patience", "seed"]
BELOW_ONE = ["label_smoothing", "subword_dropout"]
NAN, INF = float("nan"), float("inf")
NOT_OF_TRAINING = [
    *((name, value, "> 0") for name in ABOVE_ZERO for value in (0, -1)),
    *((name, -1, ">= 0") for name in MAY_BE_ZERO),
    *((name, value, "lie in 0 <= .* < 1") for name in BELOW_ONE for value in (-0.1, 1, NAN)),
    *((name, value, must) for name in ("peak_learning_rate", "consistency", "clip_norm")
      for value, must in ((INF, "finite"), (NAN, ">"))),
    ("shards", 1025, "1024 at most"),  # more than any machine has cores
    *((name, value, "a whole number$") for name, value in (
        ("epochs", 2.5), ("seed", NAN), ("patience", True), ("batch_tokens", "9"),
    )),
    ("clip_norm", "1", "a number$"), ("label_smoothing", False, "a number$"),
    ("accelerate", 1, "True or False$"), ("options", None, "a dict$"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "must"), NOT_OF_TRAINING)
def test_a_field_that_makes_no_sense_is_refused_by_its_name(name, value, must):
    with pytest.raises(ValueError, match=f"^{name}={value!r} must (be )?{must}"):
        TrainingConfig(**{name: value})


@pytest.mark.parametrize(("name", "value"), [
    *((name, 0) for name in MAY_BE_ZERO), *((name, 0.99) for name in BELOW_ONE), ("shards", 1024),
    ("epochs", np.int64(3)), ("clip_norm", 2),
])  # fmt: skip
def test_what_makes_sense_is_taken(name, value):
    assert getattr(TrainingConfig(**{name: value}), name) == value


# What is printed of it, as by --dry-run

TEXTS = st.text() | st.text("\\\"'#\n\r\t\0\x7f\x85\u2028äß–😀")
POSITIVE = st.floats(0, exclude_min=True, allow_infinity=False)
SHARES = st.floats(0, 1, exclude_max=True)
VALUES = dict.fromkeys(set(ParallelData.paths) & settings().keys(), TEXTS)
VALUES |= {"accelerate": st.booleans(), "seed": st.integers(0, 2**63 - 1)}
VALUES |= {"peak_learning_rate": POSITIVE, "clip_norm": POSITIVE}
VALUES |= {"dropout": SHARES, "subword_dropout": SHARES, "epsilon": POSITIVE}


@examples(max_examples=15)
@given(st.fixed_dictionaries({}, optional=VALUES))
def test_what_is_printed_is_read_back_as_the_same_recipe(values):
    recipe = Recipe.load("toy")
    for name, value in values.items():
        recipe = recipe.with_value(name, value)
    printed = recipe.as_toml()
    assert printed.isascii()  # so that no terminal and no editor changes it
    assert Recipe.from_dict(tomllib.loads(printed)) == recipe
    assert sum(map(len, tomllib.loads(printed).values())) == len(settings())


def test_a_path_that_is_no_unicode_is_refused_by_name():
    recipe = Recipe().with_value("train_source", "caf\udce9.de")
    with pytest.raises(RecipeError, match=r"train_source='caf.*' is no Unicode"):
        recipe.as_toml()


# What each task has


@pytest.mark.parametrize(("name", "field", "value", "message"), [
    ("gpt-toy", "max_tokens", 9, "has no max_tokens, which is for translation; leave it out: .d"),
    ("tagger", "text", "a.txt", "text, which is for language modelling, masked language mod"),
    ("tagger", "languages", "en-de", "languages, which is for .*may have corpus, vocab.*share"),
    ("toy", "unit", "characters", "unit, which is for language modelling, masked"),
    ("bert-toy", "labels", "case", "'masked-language-model' has no labels, which is for tagging;"),
])  # fmt: skip
def test_a_field_of_another_task_is_refused(name, field, value, message, capsys):
    """With the tasks that have it."""
    recipe = Recipe.load(name)
    with pytest.raises(RecipeError, match=message):
        recipe.with_value(field, value)
    sections = recipe.as_dict()
    sections["data"][field] = value
    with pytest.raises(RecipeError, match=message):
        Recipe.from_dict(sections)
    assert status_of(["train", name, f"--{field.replace('_', '-')}={value}"]) == 1
    assert f" has no {field}, which is for " in capsys.readouterr().err


@pytest.mark.parametrize(("name", "field", "of"), [
    ("toy", "train_source", "'files'"),
    ("toy", "data_dir", "'multi30k'"),
    ("gpt-toy", "text", "'text'"),
    ("gpt-toy", "validation_target", "'files'"),
    ("tagger", "labelled", "'labelled'"),
])  # fmt: skip
def test_a_field_that_does_nothing_for_the_corpus_is_refused(name, field, of, tmp_path, capsys):
    said = f"{field}='there' is for corpus={of}, and here it is 'toy'; leave out {field}"
    recipe = Recipe.load(name).with_value(field, "there")
    with pytest.raises(RecipeError, match=said):
        recipe.data.require_used()
    arguments = ["train", name, f"--{field.replace('_', '-')}=there", "--run-folder", str(tmp_path)]
    assert status_of(arguments) == 1
    assert f"minitransformer: {field}='/" in capsys.readouterr().err  # a path, by now a whole one
    assert not list(tmp_path.iterdir())


def test_another_corpus_leaves_out_what_is_for_the_first_alone(file):
    """But where it is said for it, in whichever order."""
    there = '[model]\nkind = "language-model"\n[data]\ntext = "a.txt"\nunit = "characters"\n'
    recipe = Recipe.load(file(f'{there}corpus = "text"'))
    changed = recipe.with_value("corpus", "toy").data
    assert changed == LanguageModellingData("toy", unit="characters", vocabulary_size=8000)
    with pytest.raises(RecipeError, match=r"text='a\.txt' is for corpus='text'"):
        Recipe.load(file(f'{there}corpus = "toy"')).data.require_used()


# What a release before tasks had settings of their own wrote into every run.
OF_ALL_TASKS = dict.fromkeys(("train_source", "train_target", "data_dir", "text", "labelled"), "")
OF_ALL_TASKS |= dict.fromkeys(("validation_source", "validation_target", "labels"), "")
OF_ALL_TASKS |= {"corpus": "toy", "languages": "de-en", "labelled_share": 1.0, "unit": "subwords"}
OF_ALL_TASKS |= {"vocabulary_size": 1000, "max_tokens": 256}


@pytest.mark.parametrize("kind", TOKENS)
def test_a_recipe_of_an_older_release_is_read_and_bound_as_it_was(kind):
    recipe = Recipe.from_dict({"data": OF_ALL_TASKS, "model": {"kind": kind}})
    assert recipe.data.vocabulary_size == 1000
    assert not {"labels", "max_tokens"} <= recipe.as_dict()["data"].keys()
    noted = OF_ALL_TASKS.keys() - set(recipe.data.paths)
    identity = recipe.identity()
    assert {name: identity[name] for name in noted} == {name: OF_ALL_TASKS[name] for name in noted}
    assert not set(recipe.data.paths) & identity.keys()


def test_what_an_older_release_was_told_for_nothing_is_not_passed_over():
    with pytest.raises(RecipeError, match="labels, which is for tagging"):
        Recipe.from_dict({"data": OF_ALL_TASKS | {"labels": "case"}})
    with pytest.raises(RecipeError, match="there is no field none"):
        Recipe.from_dict({"data": OF_ALL_TASKS | {"none": None}})
    with pytest.raises(RecipeError, match="text, which is for language"):  # of data alone
        Recipe.from_dict({"training": {"text": ""}})


def test_another_kind_has_the_settings_of_its_task_and_keeps_what_both_have():
    recipe = Recipe.load("toy").with_value("languages", "en-de").with_value("max_tokens", 9)
    changed = recipe.with_value("kind", "language-model")
    assert type(changed.data) is LanguageModellingData
    assert (changed.data.corpus, changed.data.languages) == ("toy", "en-de")
    assert changed.with_value("kind", "transformer").data.max_tokens == 256


def test_a_kind_and_a_corpus_of_its_task_are_taken_together(capsys):
    """Where the corpus of the recipe is none of the task of that kind."""
    both = {"corpus": "toy", "kind": "transformer"}
    assert Recipe.load("gpt").with_values(both).data == TranslationData("toy")
    arguments = ["--kind=transformer", "--corpus=toy", "--batch-tokens=9"]
    assert status_of(["train", "gpt", *arguments]) == 1
    assert "raise batch_tokens" in capsys.readouterr().err


def test_the_help_has_a_group_for_the_fields_of_each_task(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "1000")
    assert status_of(["train", "--help"]) == 0
    group = re.compile(r"^(\[data\].*):\n((?:.+\n|\n(?=  ))+)", re.MULTILINE)
    groups = {
        title: set(re.findall(r"^  --([a-z-]+)", text, re.MULTILINE))
        for title, text in group.findall(capsys.readouterr().out)
    }
    having = {}  # the tasks of each option
    for task in TASKS:
        for field in fields(imported(TASKS[task]).Data):
            having.setdefault(field.name.replace("_", "-"), []).append(task)
    for name, tasks in having.items():
        title = "[data]" if len(tasks) == len(TASKS) else f"[data] for {', '.join(tasks)}"
        assert name in groups[title]
    assert sum(map(len, groups.values())) == len(having)
    assert groups["[data] for tagging"] == {"labelled", "labels", "labelled-share"}


def test_a_field_of_a_type_that_no_recipe_has_is_named():
    @dataclass(frozen=True)
    class Odd(Settings):
        sizes: tuple = (1, 2)

    with pytest.raises(TypeError, match=r"sizes is of <class 'tuple'>; give one of 'int', 'float'"):
        Odd()
