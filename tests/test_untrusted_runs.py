"""A run folder from anywhere: what it holds is files of the documented kinds, or an error."""

import json
import os
import shutil

import pytest
from tiny_run import record, tiny_recipe, tiny_trainer, trained

from minitransformer.commands.cli import main
from minitransformer.core.regular_file import IrregularFileError, open_regular, read_regular
from minitransformer.data.text.vocabulary import Vocabulary, VocabularyError
from minitransformer.inference.trained import OF_TEXT
from minitransformer.inference.translator import Translator
from minitransformer.runs.checkpoint.file import RunError, load_checkpoint, save_checkpoint
from minitransformer.runs.run_folder import RunFolder
from minitransformer.training.recipe import Recipe, RecipeError

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("original")
    trained(tiny_recipe(folder / "corpus"), folder / "run")
    return folder / "run"


@pytest.fixture
def run(original, tmp_path):
    """A copy of a run that is over."""
    return RunFolder(shutil.copytree(original, tmp_path / "run"), OF_TEXT)


@pytest.fixture
def unfinished(run):
    run.model.unlink()
    return run


def resume(run):
    trainer = tiny_trainer(Recipe.of_run(run), run.path)
    trainer.train()


def refused(command, run, capsys):
    """The error of a command that ends with one, without a traceback."""
    capsys.readouterr()
    folder = ["--resume", str(run.path)] if command == "train" else [str(run.path)]
    text = ["bao"] if command == "translate" else []
    assert main([command, *folder, *text]) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("minitransformer: ")
    return line


# Regular files


def test_a_regular_file_is_read_and_a_link_to_one(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for name in ("file", "link"):
        assert read_regular(tmp_path / name, 3) == b"abc"
        with open_regular(tmp_path / name) as file:
            assert file.read() == b"abc"


def test_more_than_such_a_file_may_have_is_not_read(tmp_path):
    with open(tmp_path / "file", "wb") as file:
        file.truncate(10**12)  # which takes no room on the disk
    with pytest.raises(IrregularFileError, match="has 99 bytes at most, and this one more"):
        read_regular(tmp_path / "file", 99)


def test_a_folder_is_no_regular_file(tmp_path):
    with pytest.raises(IrregularFileError, match="this is no regular file"):
        open_regular(tmp_path)


def replace_by_pipe(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def replace_by_endless_device(path):
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


@needs_pipes
@pytest.mark.parametrize("replace", [replace_by_pipe, replace_by_endless_device])
@pytest.mark.parametrize("name", ["config.json", "vocabulary.model", "model.npz"])
def test_what_is_no_regular_file_is_refused_at_once(run, replace, name, capsys):
    replace(run.path / name)
    for command in ("translate", "info", "evaluate", "explore", "train"):
        error = refused(command, run, capsys)
        assert str(run.path / name) in error
        assert "this is no regular file" in error


@needs_pipes
@pytest.mark.parametrize("replace", [replace_by_pipe, replace_by_endless_device])
def test_a_log_that_is_no_regular_file_is_refused_at_once(unfinished, replace, capsys):
    replace(unfinished.log.path)
    for command in ("info", "plot", "train"):
        assert "this is no regular file" in refused(command, unfinished, capsys)


@needs_pipes
@pytest.mark.filterwarnings("ignore:passed over")
@pytest.mark.parametrize("replace", [replace_by_pipe, replace_by_endless_device])
def test_a_checkpoint_that_is_no_regular_file_is_passed_over(unfinished, replace):
    newest = unfinished.checkpoints / "step-99999999.npz"
    expected = Translator.load(unfinished.path, "cpu").translate(["bao"])
    replace(newest)
    assert Translator.load(unfinished.path, "cpu").translate(["bao"]) == expected
    with pytest.raises(RunError, match="is no checkpoint: this is no regular file"):
        load_checkpoint(newest)


@needs_pipes
@pytest.mark.parametrize("replace", [replace_by_pipe, replace_by_endless_device])
def test_a_text_that_is_no_regular_file_is_refused_at_once(unfinished, replace, tmp_path, capsys):
    """Where it is, the configuration says."""
    replace(tmp_path / "text")
    config, recipe = unfinished.load_config()
    recipe["data"]["train_source"] = str(tmp_path / "text")
    unfinished.save_config(config, recipe)
    error = refused("train", unfinished, capsys)
    assert error == f"minitransformer: {tmp_path / 'text'}: this is no regular file"


@pytest.mark.parametrize("name", ["metrics.jsonl", "metrics.jsonl.{process}.tmp"])
def test_a_training_writes_nothing_to_where_a_link_leads(unfinished, name, tmp_path):
    link = unfinished.path / name.format(process=os.getpid())
    link.unlink(missing_ok=True)
    link.symlink_to(tmp_path / "elsewhere")
    unfinished.log.forget_after(0, 0)
    unfinished.log.append({"kind": "train", "step": 1})
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("name", ["config.json", "vocabulary.model", "metrics.jsonl"])
def test_a_file_without_reason_to_be_so_large_is_refused(run, name, capsys):
    with open(run.path / name, "wb") as file:
        file.truncate(10**12)
    assert "bytes at most, and this one more" in refused("info", run, capsys)


# What the files hold


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 10**5,
        b'{"model": {}, "recipe": ' + b"[" * 10**5,
        b"\xff",
        b"1" * 10**4,
        b"[]",
        b'{"model": [], "recipe": {}}',
        b'{"model": {}, "recipe": []}',
        b'{"model": {"d_model": 8}, "recipe": {}}',
    ],
)
def test_a_configuration_of_another_kind_is_an_error_that_names_it(run, text, capsys):
    run.config.write_bytes(text)
    for command in ("translate", "info", "evaluate", "train"):
        assert f"{run.config} is damaged: " in refused(command, run, capsys)


@pytest.mark.parametrize(
    "recipe",
    [
        {"data": []},
        {"more": {}},
        {"training": {"seed": "0"}},
        {"training": {"seeds": 0}},
        {"training": {"peak_learning_rate": None}},
        {"data": {"corpus": {}}},
        {"model": {"num_heads": 1.5}},
    ],
    ids=str,
)
def test_a_recipe_of_another_kind_is_an_error_that_names_the_file(run, recipe, capsys):
    config, _ = run.load_config()
    run.save_config(config, recipe)
    with pytest.raises(RecipeError, match=r"config\.json: "):
        Recipe.of_run(run)
    for command in ("info", "evaluate", "train"):
        assert f"{run.config}: " in refused(command, run, capsys)


@pytest.mark.parametrize("name", ["max_length", "num_encoder_layers", "d_ff"])
def test_sizes_beyond_any_machine_are_no_configuration(run, name, capsys):
    sections = json.loads(run.config.read_text())
    sections["model"][name] = 10**400
    run.config.write_text(json.dumps(sections))
    assert f"{run.config} is damaged: {name}=1000" in refused("translate", run, capsys)


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b"3",
        b"{}",
        b'{"kind": 3}',
        b'{"kind": "train"}',
        b'{"kind": "test", "step": 1}',
        b'{"kind": "train", "step": -1}',
        b'{"kind": "train", "step": true}',
        b'{"kind": "train", "step": 1, "nll": "low"}',
        b'{"kind": "train", "step": 1, "nll": NaN}',
        b'{"kind": "train", "step": 1, "learning_rate": [1]}',
        b'{"kind": "validation", "step": 1, "epoch": 1, "seconds": 2.5, "left_out": 3}',
        b'{"kind": "validation", "step": 1, "bleu": 1.0}',
        b'{"kind": "validation", "step": 1, "epoch": 1.5, "bleu": 1.0}',
        b'{"kind": "validation", "step": 1, "epoch": 1, "bleu": 1e999}',
        b"[" * 10**5,
        b"\xff",
    ],
    ids=lambda line: line[:40],
)
def test_an_entry_of_another_kind_is_an_error_that_names_its_line(unfinished, line, capsys):
    lines = unfinished.log.path.read_bytes().splitlines()
    unfinished.log.path.write_bytes(b"\n".join([*lines[:3], line, *lines[3:], b""]))
    for command in ("info", "plot", "train"):
        assert f"{unfinished.log.path}, line 4 is damaged: " in refused(command, unfinished, capsys)


def test_a_piece_that_is_no_text_makes_a_vocabulary_none(run):
    """The model of sentencepiece loads, and fails when the piece is asked for."""
    content = run.attached["vocabulary"].read_bytes().replace("▁b".encode(), b"\xe2\x96\xff\x62", 1)
    with pytest.raises(VocabularyError, match="this is no vocabulary of minitransformer"):
        Vocabulary(content)


def rewrite_state(path, **changes):
    arrays, state = load_checkpoint(path)
    state |= changes
    save_checkpoint(path, arrays, {name: v for name, v in state.items() if v != "left out"})


@pytest.mark.parametrize(
    "changes",
    [
        *({name: "left out"} for name in ("step", "epoch", "position", "seconds")),
        *({name: -1} for name in ("step", "epoch", "position")),
        *({name: 10**400} for name in ("step", "epoch", "position", "seconds")),
        {"position": 10**9},
        {"position": 1.0},
        {"epoch": 4},
        {"seconds": "long"},
        {"best": "left out"},
        {"best": []},
        {"best": {"bleu": 1.0}},
        {"best": {"bleu": "high", "epoch": 1}},
        {"best": {"bleu": 1.0, "epoch": 0}},
        {"best": {"bleu": 1.0, "epoch": 4}},
    ],
    ids=lambda changes: f"{changes}"[:40],
)
def test_a_state_that_no_training_has_been_in_is_refused(unfinished, changes, capsys):
    newest = max(unfinished.checkpoints.iterdir())
    if "position" in changes:  # which counts amid an epoch
        changes = {"epoch": 2, "best": {"bleu": 1.0, "epoch": 2}} | changes
    rewrite_state(newest, **changes)
    error = refused("train", unfinished, capsys)
    assert str(unfinished.path) in error
    assert len(error) < 1000


@pytest.mark.parametrize(
    "changes",
    [
        {"origin": "left out"},
        {"origin": ["epoch 1"]},
        {"validation_bleu": "left out"},
        {"validation_bleu": "high"},
        {"validation_bleu": 10**400},
    ],
    ids=lambda changes: f"{changes}"[:40],
)
def test_chosen_parameters_that_say_nothing_of_their_choice_are_refused(run, changes, capsys):
    rewrite_state(run.model, **changes)
    for command in ("translate", "info", "train"):
        assert f"{run.model} is damaged: it" in refused(command, run, capsys)


# Never from zero in silence


def test_a_truncated_model_has_one_story(run, original, capsys):
    os.truncate(run.model, 1000)
    errors = {refused(command, run, capsys) for command in ("translate", "info", "train")}
    (error,) = errors
    assert f"{run.model} is no checkpoint, or a damaged one" in error
    assert f"minitransformer train --resume {run.path} makes it again" in error
    run.model.unlink()
    assert main(["train", "--resume", str(run.path)]) == 0
    assert record(run.path) == record(original)


def lose(paths):
    for path in paths:
        path.unlink()


def truncate(paths):
    for path in paths:
        os.truncate(path, 1000)


@pytest.mark.filterwarnings("ignore:passed over")
@pytest.mark.parametrize("harm", [lose, truncate])
def test_a_training_without_a_whole_checkpoint_never_begins_again_by_itself(unfinished, harm):
    harm(list(unfinished.checkpoints.iterdir()))
    before = {path: path.read_bytes() for path in unfinished.path.rglob("*") if path.is_file()}
    with pytest.raises(RunError) as caught:
        resume(unfinished)
    left = sorted(str(path.relative_to(unfinished.path)) for path in before)
    kept = [name for name in left if name.startswith(("checkpoints", "epochs", "metrics"))]
    assert all(name in str(caught.value) for name in kept)
    assert f"train --resume {unfinished.path} --start-over" in str(caught.value)
    after = {path: path.read_bytes() for path in unfinished.path.rglob("*") if path.is_file()}
    assert after == before


def test_metrics_or_epochs_alone_tell_that_there_was_a_training(unfinished):
    shutil.rmtree(unfinished.checkpoints)
    metrics = unfinished.log.path.read_bytes()
    unfinished.log.path.unlink()
    with pytest.raises(RunError, match="there is epochs"):
        resume(unfinished)
    shutil.rmtree(unfinished.epochs)
    unfinished.log.path.write_bytes(metrics)
    with pytest.raises(RunError, match=r"there is metrics\.jsonl\."):
        resume(unfinished)


@pytest.mark.filterwarnings("ignore:passed over")
def test_starting_over_sets_aside_what_was_trained_and_ends_as_it_did(unfinished, original, capsys):
    truncate(list(unfinished.checkpoints.iterdir()))
    trained_once = {
        path.relative_to(unfinished.path): path.read_bytes()
        for path in unfinished.path.rglob("*")
        if path.is_file()
    }
    (unfinished.path / "notes.txt").write_text("mine")
    for number in (1, 2):
        assert main(["train", "--resume", str(unfinished.path), "--start-over"]) == 0
        aside = unfinished.path / f"before-{number}"
        assert f"what was trained is now in {aside}" in capsys.readouterr().err
        assert record(unfinished.path) == record(original)
    first = unfinished.path / "before-1"
    assert trained_once == {
        path.relative_to(first): path.read_bytes() for path in first.rglob("*") if path.is_file()
    }
    assert record(unfinished.path / "before-2") == record(original)  # a whole run folder
    assert (unfinished.path / "notes.txt").read_text() == "mine"


def test_starting_over_takes_the_text_as_it_is_now(unfinished, original, tmp_path):
    shutil.copytree(original.parent / "corpus", tmp_path / "corpus")
    for path in (tmp_path / "corpus").glob("train.*"):
        path.write_text(path.read_text().replace("b", "d"))
    sections = json.loads(unfinished.config.read_text())
    for name in ("train_source", "train_target"):
        sections["recipe"]["data"][name] = str(tmp_path / "corpus" / name.replace("_", "."))
    unfinished.config.write_text(json.dumps(sections))
    with pytest.raises(RunError, match="the training data have changed"):
        resume(unfinished)
    assert main(["train", "--resume", str(unfinished.path), "--start-over"]) == 0
    assert main(["train", "--resume", str(unfinished.path)]) == 0  # and it is over


def test_only_a_run_that_there_is_starts_over(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["train", "toy", "--start-over"])
    assert "--start-over goes with --resume" in capsys.readouterr().err


@pytest.mark.parametrize("harm", [lose, truncate])
def test_the_best_epoch_is_missed_when_the_training_is_resumed(unfinished, harm, capsys):
    """And not when it ends, hours later."""
    newest = max(unfinished.checkpoints.iterdir())
    best = unfinished.epoch_file(load_checkpoint(newest)[1]["best"]["epoch"])
    harm([best])
    assert str(best) in refused("train", unfinished, capsys)


def test_epochs_needed_by_either_checkpoint_are_there(tmp_path):
    """Who has lost the newest checkpoint goes back to the one before, and needs its best epoch."""
    recipe = tiny_recipe(tmp_path / "corpus", epochs=6, average=1, save_every=1000)
    trainer = tiny_trainer(recipe, tmp_path / "run")
    bleus = iter([5.0, 1.0, 9.0, 2.0, 3.0, 4.0])
    trainer.task.validate = lambda model: {"nll": 1.0, "bleu": next(bleus)}
    trainer.progress.validated = lambda *_: None
    save = trainer.run.save_checkpoint
    missing = []

    def save_and_look(arrays, state):
        save(arrays, state)
        for path in trainer.run.checkpoints.iterdir():
            best = load_checkpoint(path)[1]["best"]
            if best and not trainer.run.epoch_file(best["epoch"]).exists():
                missing.append((path, best))

    trainer.run.save_checkpoint = save_and_look
    trainer.train()
    assert missing == []
