"""A language model goes on with another text: all of it is trained, or adapters of it alone."""

import shutil
from itertools import islice

import gguf_file
import numpy as np
import pytest
from tiny_run import record, tiny_trainer, trained
from tiny_tasks import TEXT, language_modelling
from tiny_translator import status_of

from minitransformer.commands.cli import main
from minitransformer.inference.generator import TextGenerator
from minitransformer.runs.checkpoint.file import RunError, load_checkpoint
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.task import run_at
from minitransformer.training.pretrained import Pretrained
from minitransformer.training.recipe import Recipe

RANK = 2
OTHER = TEXT.replace("says", "asks")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A run that has learned one text, of the paper's layers."""
    folder = tmp_path_factory.mktemp("base")
    trained(language_modelling(folder / "corpus"), folder / "run")
    return folder / "run"


def tuned_from(base, folder, **changes):
    """The Trainer of a whole run in ``folder`` that went on with another text."""
    recipe = language_modelling(folder / "corpus", OTHER, lora=RANK, **changes)
    pretrained = Pretrained.of_run(base)
    return trained(pretrained.fitted(recipe, {}), folder / "run", pretrained)


@pytest.fixture(scope="module")
def tuned(base, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuned")
    return tuned_from(base, folder), folder / "run"


def arrays_of(path):
    return load_checkpoint(path)[0]


def a_copy(run, folder):
    shutil.copytree(run, folder)
    return folder


def test_it_learns_the_other_text_with_all_else_as_it_was(base, tuned):
    trainer, run = tuned
    before = arrays_of(base / "model.npz")
    frozen = {id(f.data): f.data for _, f in trainer.model.named_frozen()}
    assert sum(array.size for array in frozen.values()) == sum(a.size for a in before.values())
    sums = sorted(float(array.sum()) for array in before.values())
    assert sorted(float(array.sum()) for array in frozen.values()) == sums
    entries, _ = record(run)
    losses = [entry["nll"] for entry in entries if entry["kind"] == "validation"]
    model, _ = run_at(base).load_trained("cpu")
    assert losses[-1] < trainer.task.validate(model)["nll"] - 0.05


def test_what_it_stores_are_adapters_alone(base, tuned):
    trainer, run = tuned
    path = "parameters/stack.layers.0"
    for name in ("model.npz", *(f"epochs/{p.name}" for p in (run / "epochs").iterdir())):
        arrays = arrays_of(run / name)
        assert sum(a.size for a in arrays.values()) == trainer.model.config.num_parameters()
        assert arrays[f"{path}.self_attention.query.a"].shape == (8, RANK)
        assert arrays[f"{path}.feed_forward.outer.b"].shape == (RANK, 8)
    for name, array in arrays_of(run / "beginning.npz").items():
        np.testing.assert_array_equal(array, arrays_of(base / "model.npz")[name])


def test_it_goes_on_bit_for_bit_without_the_other_run(tuned, tmp_path):
    _, run = tuned
    cut = a_copy(run, tmp_path / "cut")
    (cut / "model.npz").unlink()
    max((cut / "checkpoints").iterdir()).unlink()
    trained(Recipe.of_run(RunFolder(cut)), cut)
    assert record(cut) == record(run)


def test_who_uses_it_has_one_model_of_both(base, tuned):
    trainer, run = tuned
    ids = np.arange(4, 16)[None]
    generator = TextGenerator.load(run, "cpu")
    assert generator.model.config == TextGenerator.load(base, "cpu").model.config
    expected, _ = trainer.model.forward(ids)
    np.testing.assert_allclose(generator.logits(ids), expected, rtol=1e-4, atol=1e-5)


def test_merged_it_is_a_run_of_its_own_that_says_the_same(tuned, tmp_path, capsys):
    _, run = tuned
    assert main(["merge", str(run), str(tmp_path / "merged")]) == 0
    one, other = (TextGenerator.load(path, "cpu") for path in (run, tmp_path / "merged"))
    np.testing.assert_array_equal(one.model.flat.data, other.model.flat.data)
    assert one.vocabulary.model == other.vocabulary.model
    assert not (tmp_path / "merged" / "beginning.npz").exists()
    assert main(["info", str(tmp_path / "merged")]) == 0
    assert "finished: merged, trained elsewhere" in capsys.readouterr().out


def test_what_has_no_adapters_is_not_merged(base, tmp_path, capsys):
    assert main(["merge", str(base), str(tmp_path / "merged")]) == 1
    assert "has no adapters; train with --lora" in capsys.readouterr().err
    assert not (tmp_path / "merged").exists()


def test_the_next_ones_adapt_what_the_first_have_learned(tuned, tmp_path):
    _, run = tuned
    pretrained = Pretrained.of_run(run)
    recipe = language_modelling(tmp_path / "corpus", OTHER, lora=1)
    trainer = tiny_trainer(pretrained.fitted(recipe, {}), tmp_path / "next", pretrained=pretrained)
    ids = np.arange(4, 16)[None]
    expected = TextGenerator.load(run, "cpu").logits(ids)
    np.testing.assert_allclose(trainer.model.forward(ids)[0], expected, rtol=1e-4, atol=1e-5)


def test_all_of_it_may_be_trained_its_head_too(base, tmp_path):
    recipe = language_modelling(tmp_path / "corpus", OTHER, tying="none", epochs=1)
    trained(recipe, tmp_path / "first")
    pretrained = Pretrained.of_run(tmp_path / "first")
    fitted = pretrained.fitted(language_modelling(tmp_path / "corpus", OTHER), {})
    trainer = tiny_trainer(fitted, tmp_path / "second", pretrained=pretrained)
    for name, array in arrays_of(tmp_path / "first" / "model.npz").items():
        found = dict(trainer.model.named_parameters())[name.removeprefix("parameters/")]
        np.testing.assert_array_equal(found.data, array)
    before = trainer.model.flat.data.copy()
    for _ in islice(trainer.steps(), 1):
        pass
    assert (trainer.model.flat.data != before).any()


@pytest.mark.parametrize("what", ["exchanged", "gone"])
def test_without_what_it_adapts_it_is_refused(what, base, tuned, tmp_path):
    _, run = tuned
    harmed = a_copy(run, tmp_path / "harmed")
    (harmed / "beginning.npz").unlink()
    if what == "exchanged":
        shutil.copy(base / "model.npz", harmed / "beginning.npz")
    said = "has SHA-256" if what == "exchanged" else "beginning.npz is missing"
    with pytest.raises(RunError, match=said):
        TextGenerator.load(harmed, "cpu")


def test_the_dropout_and_the_rank_are_those_of_the_recipe(base):
    fitted = Pretrained.of_run(base).fitted(Recipe.load("fine-tune").with_value("lora", 3), {})
    values = fitted.values()
    assert [values[n] for n in ("d_model", "dropout", "lora", "unit")] == [8, 0.0, 3, "characters"]


# The commands, with a model of others


@pytest.fixture(scope="module")
def of_others(tmp_path_factory):
    folder = tmp_path_factory.mktemp("of_others")
    (folder / "text.txt").write_text("ab c ☃ b\n" * 60, encoding="utf-8")
    return gguf_file.imported(folder), folder / "text.txt"


def said_by(*arguments, capsys, status=0):
    capsys.readouterr()
    assert status_of(list(map(str, arguments))) == status
    return capsys.readouterr()


def test_no_recipe_is_needed_where_there_is_a_model_to_begin_with(of_others, tmp_path, capsys):
    run, text = of_others
    fields = "--context", 8, "--batch-tokens", 64, "--epochs", 2, "--warmup-steps", 1
    tune = "train", "--from", run, "--text", text, *fields, "--peak-learning-rate", 0.01
    where = tmp_path / "tuned"
    said = said_by(*tune, "--lora", 2, "--run-folder", where, capsys=capsys).err
    before, after = said.index("before: validation perplexity"), said.index("epoch 1: validation")
    assert before < after
    number = float(said[before:].split()[3])
    assert float(said[after:].split()[4]) < number
    printed = said_by("info", where, capsys=capsys).out
    assert "began with: " in printed
    assert " of adapters\n" in printed
    base = TextGenerator.load(run, "cpu")
    assert TextGenerator.load(where, "cpu").model.num_parameters() == base.model.num_parameters()


def test_a_text_is_scored_by_what_a_model_says_of_each_token(of_others, capsys):
    run, text = of_others
    generator = TextGenerator.load(run, "cpu")
    between = list(generator.vocabulary.begins)
    ids = [*between, *generator.vocabulary.encode(text.read_text(encoding="utf-8")), *between]
    context, total = Recipe.of_run(run_at(run)).data.context, 0.0
    for start in range(0, len(ids) - 1, context):
        window = ids[start : start + context + 1]
        logits = generator.logits(np.array(window[:-1])[None])[0].astype(np.float64)
        logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        total -= logs[np.arange(len(logs)), window[1:]].sum()
    printed = said_by("evaluate", run, "--text", text, capsys=capsys).out
    perplexity = float(printed.split("perplexity")[1].split()[0])
    assert perplexity == pytest.approx(np.exp(total / (len(ids) - 1)), rel=1e-4)
    assert f"text, {text}: imported" in printed


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["train", "--text", "TEXT"], 2, "RECIPE, --from FOLDER, or --resume FOLDER"),
        (["train", "gpt", "--lora", 2, "--text", "TEXT"], 1, "lora is for a model that has learn"),
        (["train", "gpt", "--unit", "tokens", "--text", "TEXT"], 1, "begins with none; give --fr"),
        (["train", "--from", "RUN", "--lora", 99, "--text", "TEXT"], 1, "lora=99 saves nothing"),
        (["train", "--from", "RUN", "--context", 999, "--text", "TEXT"], 1, "context=999 is more"),
        (
            ["train", "--from", "RUN", "--unit", "subwords", "--text", "TEXT"],
            1,
            "unit is tokens in",
        ),
        (["train", "bert", "--context", 9, "--text", "TEXT"], 1, "context is for language models"),
        (["evaluate", "RUN", "--text", "EMPTY"], 1, "has no text"),
        (["evaluate", "RUN", "--split", "test"], 2, "leave out --split"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(
    arguments, status, said, of_others, tmp_path, capsys
):
    run, text = of_others
    (tmp_path / "empty.txt").write_text(" \n")
    places = {"RUN": run, "TEXT": text, "EMPTY": tmp_path / "empty.txt"}
    arguments = [places.get(a, a) for a in arguments]
    if arguments[0] == "train":
        arguments += ["--run-folder", tmp_path / "run"]
    assert said in said_by(*arguments, capsys=capsys, status=status).err
    assert not (tmp_path / "run" / "config.json").exists()
