"""A language model goes on with another text: all of it is trained, or adapters of it alone."""

import io
import pickle
import re
import shutil
from itertools import islice
from pathlib import Path

import gguf_file
import numpy as np
import pytest
from tiny_run import record, tiny_trainer, trained
from tiny_tasks import TEXT, language_modelling
from tiny_translator import status_of

from minitransformer.commands.cli import main
from minitransformer.course.own.layers import parts_for
from minitransformer.inference.generator import TextGenerator
from minitransformer.runs.checkpoint.file import load_checkpoint
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.task import run_at
from minitransformer.training.pretrained import Pretrained
from minitransformer.training.recipe import Recipe, RecipeError

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
    cut = shutil.copytree(run, tmp_path / "cut")
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
    assert "finished: merged, trained in another run" in capsys.readouterr().out


def test_of_an_unfinished_training_it_is_said_whose_parameters_are_merged(tuned, tmp_path, capsys):
    run = shutil.copytree(tuned[1], tmp_path / "run")
    (run / "model.npz").unlink()
    assert main(["merge", str(run), str(tmp_path / "merged")]) == 0
    said = "this training is not finished; the parameters are those of step-"
    assert said in capsys.readouterr().err


def test_what_is_taken_is_not_merged_into_and_nothing_is_read_for_it(
    tuned, base, monkeypatch, capsys
):
    _, run = tuned
    monkeypatch.setattr(TextGenerator, "load", None)
    assert main(["merge", str(run), str(base)]) == 1
    assert f"{base} holds a run already" in capsys.readouterr().err


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


def test_what_it_adapts_goes_to_other_processes_as_it_is(tuned, tmp_path):
    """Which may be on machines without the folder."""
    _, run = tuned
    copied = shutil.copytree(run, tmp_path / "run")
    sent = pickle.dumps(Pretrained.kept_in(run_at(copied)))
    shutil.rmtree(copied)
    received = pickle.loads(sent)
    for name, array in arrays_of(run / "beginning.npz").items():
        np.testing.assert_array_equal(received.arrays[name], array)


def test_without_it_nothing_is_trained(base, tmp_path):
    """Of a run that was killed before its first checkpoint."""
    recipe = language_modelling(tmp_path / "corpus", OTHER, lora=RANK)
    pretrained = Pretrained.of_run(base)
    fitted = pretrained.fitted(recipe, {})
    tiny_trainer(fitted, tmp_path / "run", pretrained=pretrained)
    (tmp_path / "run" / "beginning.npz").unlink()
    with pytest.raises(RecipeError, match=r"has no beginning\.npz; put it back"):
        tiny_trainer(fitted, tmp_path / "run")


def test_a_model_that_sees_less_than_the_recipe_says_is_trained_on_what_it_sees(base, tmp_path):
    recipe = Recipe.load("fine-tune").with_values({"text": str(tmp_path / "text"), "lora": 1})
    (tmp_path / "text").write_text(OTHER, encoding="utf-8")
    pretrained = Pretrained.of_run(base)
    trainer = tiny_trainer(pretrained.fitted(recipe, {}), tmp_path / "run", pretrained=pretrained)
    assert max(b.ids.shape[1] for b in trainer.task.batches(0)) == 12


def test_signs_that_the_vocabulary_lacks_are_told(base, tmp_path):
    recipe = language_modelling(tmp_path / "corpus", TEXT.replace("line", "лине"))
    pretrained, said = Pretrained.of_run(base), io.StringIO()
    tiny_trainer(pretrained.fitted(recipe, {}), tmp_path / "run", said, pretrained)
    (share,) = re.findall(r"([\d.]+)% of the tokens of this text are unknown", said.getvalue())
    assert float(share) == pytest.approx(100 * 4 / 15, abs=2)


def test_the_dropout_and_the_rank_are_those_of_the_recipe(base):
    fitted = Pretrained.of_run(base).fitted(Recipe.load("fine-tune").with_value("lora", 3), {})
    values = fitted.values()
    assert [values[n] for n in ("d_model", "dropout", "lora", "unit")] == [8, 0.0, 3, "characters"]


def test_a_learners_functions_stand_in_for_those_of_the_model_that_is_used(tuned, capsys):
    """Which is of the paper's layers, whatever the adapters were trained in."""
    _, run = tuned
    own = Path(__file__).parents[2] / "lessons" / "solutions" / "own.py"
    plain, _ = run_at(run).load_trained("cpu")
    count = len(parts_for(plain.config))
    said = said_by("generate", run, "line", "--length", 3, "--own", own, capsys=capsys).err
    assert f" of {count} functions are those of {own}" in said


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
    assert " parameters of adapters of rank 2 on cpu" in said
    assert " parameters of adapters of rank 2\n" in printed
    base = TextGenerator.load(run, "cpu")
    assert TextGenerator.load(where, "cpu").model.num_parameters() == base.model.num_parameters()


@pytest.mark.parametrize(
    ("options", "context"), [([], 256), (["--context", 7], 7), (["--context", 9999], 512)]
)
def test_a_text_is_scored_by_what_a_model_says_of_each_token(options, context, of_others, capsys):
    run, text = of_others
    generator = TextGenerator.load(run, "cpu")
    between = list(generator.vocabulary.begins)
    ids = [*between, *generator.vocabulary.encode(text.read_text(encoding="utf-8")), *between]
    total = 0.0
    for start in range(0, len(ids) - 1, context):
        window = ids[start : start + context + 1]
        logits = generator.logits(np.array(window[:-1])[None])[0].astype(np.float64)
        logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        total -= logs[np.arange(len(logs)), window[1:]].sum()
    printed = said_by("evaluate", run, "--text", text, *options, capsys=capsys).out
    perplexity = float(printed.split("perplexity")[1].split()[0])
    assert perplexity == pytest.approx(np.exp(total / (len(ids) - 1)), rel=1e-4)
    assert printed.startswith(f"{text}, {context} tokens at once: imported")


def test_a_run_and_what_it_becomes_merged_are_scored_alike(of_others, tmp_path, capsys):
    """Whatever was seen at once in the training."""
    run, text = of_others
    fields = "--context", 8, "--batch-tokens", 64, "--epochs", 1, "--lora", 2
    tuned, merged = tmp_path / "tuned", tmp_path / "merged"
    said_by("train", "--from", run, "--text", text, *fields, "--run-folder", tuned, capsys=capsys)
    said_by("merge", tuned, merged, capsys=capsys)
    printed = [
        said_by("evaluate", path, "--text", text, capsys=capsys).out.split("\n", 1)[1]
        for path in (tuned, merged)
    ]
    first, second = (re.split(r"(\d+\.\d+)", text) for text in printed)
    assert first[::2] == second[::2]
    # Added to the weights, what adapters add is rounded in another order.
    found, expected = ([*map(float, parts[1::2])] for parts in (first, second))
    assert found == pytest.approx(expected, rel=1e-5, abs=1.01e-4)  # of which four digits are said


def test_marks_in_a_text_are_told_to_be_letters(of_others, tmp_path, capsys):
    run, _ = of_others
    (tmp_path / "text").write_text("<|im_start|>ab c\n" * 40, encoding="utf-8")
    fields = "--context", 8, "--batch-tokens", 64, "--epochs", 1, "--run-folder", tmp_path / "run"
    command = "train", "--from", run, "--text", tmp_path / "text", *fields
    assert "<|im_start|> in this text is read as letters" in said_by(*command, capsys=capsys).err


def test_a_run_that_cannot_be_written_leaves_nothing(of_others, tmp_path, capsys, monkeypatch):
    run, text = of_others
    fields = "--context", 8, "--batch-tokens", 64, "--epochs", 1, "--lora", 1
    tuned = tmp_path / "tuned"
    said_by("train", "--from", run, "--text", text, *fields, "--run-folder", tuned, capsys=capsys)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunFolder, "save_model", full)
    (tmp_path / "mine").mkdir()
    for name in ("m", "mine"):
        told = said_by("merge", tuned, tmp_path / name, capsys=capsys, status=1).err
        assert "No space left" in told
    assert [path.name for path in tmp_path.glob("m*")] == ["mine"]  # as it was there before
    assert not any((tmp_path / "mine").iterdir())


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["train", "--text", "TEXT"], 2, "RECIPE, --from FOLDER, or --resume FOLDER"),
        (["train", "gpt", "--lora", 2, "--text", "TEXT"], 1, "lora is for a model that has learn"),
        (["train", "gpt", "--unit", "tokens", "--text", "TEXT"], 1, "begins with none; give --fr"),
        (
            ["train", "--from", "RUN", "--lora", 99, "--text", "TEXT"],
            1,
            "lora=99 must be 21 at most",
        ),
        (
            ["train", "--from", "RUN", "--unit", "subwords", "--text", "TEXT"],
            1,
            "unit is tokens in",
        ),
        (["train", "bert", "--context", 9, "--text", "TEXT"], 1, "context is for language models"),
        (["evaluate", "RUN", "--text", "EMPTY"], 1, "has no text"),
        (["merge", "RUN", "NEW"], 1, "has no adapters; train with --lora"),
        (["evaluate", "RUN", "--split", "test"], 2, "leave out --split"),
        (["evaluate", "RUN", "--context", 9], 2, "--context goes with --text"),
        (
            ["train", "--from", "RUN", "--batch-tokens", 64, "--text", "TEXT"],
            1,
            "a row may have context=256 tokens",
        ),
        (
            ["train", "gpt", "--from", "RUN", "--batch-tokens", 64, "--text", "TEXT"],
            1,
            "max_length=512 tokens, and a batch has batch_tokens=64; raise batch_tokens, or",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(
    arguments, status, said, of_others, tmp_path, capsys
):
    run, text = of_others
    (tmp_path / "empty.txt").write_text(" \n")
    places = {"RUN": run, "TEXT": text, "EMPTY": tmp_path / "empty.txt", "NEW": tmp_path / "run"}
    arguments = [places.get(a, a) for a in arguments]
    if arguments[0] == "train":
        arguments += ["--run-folder", tmp_path / "run"]
    assert said in said_by(*arguments, capsys=capsys, status=status).err
    assert not (tmp_path / "run" / "config.json").exists()
