import errno
import json
import math
import os
import re
import shlex
import signal
import tomllib

import pytest
from run_files import contents
from tiny_translator import write_recipe

from minitransformer.commands.cli import main
from minitransformer.commands.fields import METAVARS
from minitransformer.runs.lock import only_training
from minitransformer.runs.run_folder import RunFolder
from minitransformer.training.recipe import RECIPES, Recipe, settings
from minitransformer.training.trainer import Trainer


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    """A TOML file in the current folder, which is empty but for it and its corpus."""
    monkeypatch.chdir(tmp_path)
    return str(write_recipe(tmp_path))


def train(*arguments):
    return main(["train", *map(str, arguments)])


def test_a_run_folder_holds_all_that_a_run_makes(run_folder):
    names = {"config.json", "vocabulary.model", "metrics.jsonl", "model.npz"}
    pictures = {"loss.png", "learning_rate.png"}
    assert {file.name for file in run_folder.iterdir() if file.is_file()} == names | pictures


def test_without_matplotlib_a_training_ends_well_and_has_no_pictures(recipe, without, capsys):
    without("matplotlib")
    assert train(recipe, "--epochs", 1) == 0
    *said, no_picture, done = capsys.readouterr().err.splitlines()
    assert not any("resumed" in line for line in said)
    assert no_picture.startswith("no picture of it was made: a picture needs matplotlib")
    assert done == "done; try it: minitransformer translate runs/captions"


def test_any_field_can_be_replaced_on_the_command_line(recipe, tmp_path):
    changes = {"epochs": 1, "seed": 7, "d_model": 16, "dropout": 0.25, "norm": "post"}
    changes |= {"max_tokens": 30, "shards": 2}
    flags = [part for name, value in changes.items() for part in (f"--{name}", value)]
    assert train(recipe, *(str(flag).replace("_", "-") for flag in flags), "--no-accelerate") == 0
    recorded = json.loads((tmp_path / "runs/captions/config.json").read_text())["recipe"]
    expected = Recipe.load(recipe)
    for name, value in (changes | {"accelerate": False}).items():
        expected = expected.with_value(name, value)
    assert recorded == expected.as_dict()


@pytest.fixture
def help_of_train(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit, match="0"):
        train("--help")
    return capsys.readouterr().out


def test_help_describes_every_field_and_its_default(help_of_train):
    entries = [" ".join(entry.split()) for entry in re.split(r"\n  (?=--)", help_of_train)]
    for name, setting in settings().items():
        flag = "--" + name.replace("_", "-")
        of_type = f", --no-{flag[2:]}" if setting.type is bool else f" {METAVARS[setting.type]}"
        usage = f"{flag}{of_type} "
        (description,) = (e.removeprefix(usage) for e in entries if e.startswith(usage))
        assert not description.startswith("(")
        default = f"(default: {setting.default}"  # of a Transformer, where others differ
        told = any(f"{default}{of}" in description for of in (")", " for tran"))
        assert setting.default == "" or told
    assert "--epochs N passes over the training data (default: 30)" in entries


def test_help_describes_a_field_that_kinds_share_in_the_words_of_each(help_of_train):
    shown = " ".join(help_of_train.split())
    for words in (
        "--num-encoder-layers N transformer, restricted: layers .*?; convolution: convolutions ",
        r"--d-model N transformer, restricted: .*?\(default: 512 for transformer, .*?; 128 for lan",
        "--num-heads N attention heads, each",  # the same for all kinds
    ):
        assert re.search(words, shown)


def test_help_says_of_each_recipe_what_it_is(help_of_train):
    listed = help_of_train.partition("recipes of the package:\n")[2].split("\n\n")[0]
    listed = dict(line.split(maxsplit=1) for line in listed.splitlines())
    for file in RECIPES.glob("*.toml"):
        first = file.read_text(encoding="utf-8").splitlines()[0]
        assert first == f"# {listed[file.stem]}"


@pytest.mark.parametrize(("more", "warned"), [(-1, False), (0, False), (1, True)])
def test_a_training_that_ends_within_its_warm_up_is_warned_of(recipe, more, warned, capsys):
    train(recipe, "--dry-run", "--epochs", "1")
    epoch = re.search(r"pairs in (\d+) batches", capsys.readouterr().err)[1]
    warmup = math.ceil(int(epoch) / Recipe.load(recipe).training.accumulate) + more
    assert train(recipe, "--dry-run", "--epochs", "1", "--warmup-steps", warmup) == 0
    said = f"steps, all of them within warmup_steps={warmup}:"
    assert (said in capsys.readouterr().err) == warned


def test_a_run_is_never_overwritten(recipe, run_copy, capsys):
    before = contents(run_copy)
    choose = f"choose another folder: --run-folder '{run_copy}-"
    assert train(recipe, "--run-folder", run_copy) == 1
    said = f"minitransformer: {run_copy} holds a run already; "
    assert capsys.readouterr().err == f"{said}{choose}2'\n"  # as it is done
    (run_copy.parent / "a copy-2").mkdir()
    model = (run_copy / "model.npz").rename(run_copy / "aside")
    assert train(recipe, "--run-folder", run_copy) == 1
    said += f"go on with it: minitransformer train --resume '{run_copy}', or "
    assert capsys.readouterr().err == f"{said}{choose}3'\n"
    model.rename(run_copy / "model.npz")
    assert contents(run_copy) == before
    assert train(recipe, "--run-folder", run_copy, "--dry-run") == 0  # which writes nothing
    assert contents(run_copy) == before


def refused(recipe, path, capsys):
    """What is said when a new run is not begun at ``path``, where all stays as it was."""
    before = contents(path.parent)
    assert train(recipe, "--run-folder", path) == 1
    assert contents(path.parent) == before
    said = capsys.readouterr().err
    assert said.endswith(f"; choose another folder: --run-folder {shlex.quote(f'{path}-2')}\n")
    return said


def test_a_new_run_goes_neither_into_files_nor_into_links_to_nothing(recipe, tmp_path, capsys):
    notes, link = tmp_path / "my notes", tmp_path / "my link"
    notes.write_text("do not touch")
    link.symlink_to("gone")
    assert "my notes is a file, and a run is a folder" in refused(recipe, notes, capsys)
    assert "my link is a link to gone, where nothing is" in refused(recipe, link, capsys)
    assert train(recipe, "--run-folder", notes / "run") == 1
    assert capsys.readouterr().err == f"minitransformer: {notes / 'run'}: Not a directory\n"


def test_a_run_killed_before_it_had_a_configuration_begins_anew(recipe, tmp_path, capsys):
    run = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "save_config", lambda *_, **__: pytest.fail("the power is gone"))
        with pytest.raises(pytest.fail.Exception):
            train(recipe, "--run-folder", run)
    assert {path.name for path in run.iterdir()} == {"checkpoints", "epochs", "vocabulary.model"}
    assert train(recipe, "--run-folder", run, "--vocabulary-size", 70) == 1
    assert "vocabulary.model is there already, and is not what this" in capsys.readouterr().err
    assert train(recipe, "--run-folder", run, "--epochs", 1) == 0


def test_a_run_can_be_looked_at_while_another_process_trains_it(unfinished, capsys):
    with only_training(unfinished):
        assert main(["info", str(unfinished)]) == 0
        assert main(["plot", str(unfinished)]) == 0
        assert main(["translate", str(unfinished), "ein Hund"]) == 0
        assert main(["evaluate", str(unfinished), "--split", "validation"]) == 0
        capsys.readouterr()
        assert train("--resume", unfinished) == 1
    assert "is under way: process" in capsys.readouterr().err
    assert train("--resume", unfinished) == 0


def test_a_dry_run_reports_and_prints_a_recipe_and_leaves_nothing(recipe, tmp_path, capsys):
    before = contents(tmp_path)
    assert train(recipe, "--dry-run", "--d-ff", 128, "--epsilon", "1e-6") == 0
    printed, error = capsys.readouterr()
    assert "72 pairs in 9 batches" in error
    assert "Transformer" in error
    expected = Recipe.load(recipe).with_value("d_ff", 128).with_value("epsilon", 1e-6)
    assert Recipe.from_dict(tomllib.loads(printed)) == expected
    assert sum(map(len, tomllib.loads(printed).values())) == len(settings())
    assert contents(tmp_path) == before
    assert not (tmp_path / "runs").exists()


def interrupt_at(step, monkeypatch, times=1):
    take_step = Trainer.take_step

    def interrupted(self, *arguments):
        take_step(self, *arguments)
        if self.step == step:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Trainer, "take_step", interrupted)


def test_after_ctrl_c_the_command_shown_ends_the_run_as_if_undisturbed(recipe, tmp_path, capsys):
    options = ["--epochs", 2, "--run-folder"]
    assert train(recipe, *options, "undisturbed") == 0
    with pytest.MonkeyPatch.context() as patch:
        interrupt_at(11, patch)
        assert train(recipe, *options, "it's stopped") == 130
    message = capsys.readouterr().err.splitlines()[-1]
    said, command = message.split("; go on: ")
    assert said == "stopped after step 11"

    assert main(shlex.split(command)[1:]) == 0
    assert "resumed after step 11, epoch 2" in capsys.readouterr().err
    models = [tmp_path / name / "model.npz" for name in ("it's stopped", "undisturbed")]
    assert models[0].read_bytes() == models[1].read_bytes()


def test_a_second_ctrl_c_stops_at_once(recipe, tmp_path, monkeypatch, capsys):
    interrupt_at(11, monkeypatch, times=2)
    assert train(recipe, "--epochs", 2, "--run-folder", "run") == 130
    told = "stopped; go on from the last checkpoint: minitransformer train --resume run\n"
    assert capsys.readouterr().err.endswith(told)
    assert (tmp_path / "run/checkpoints/step-00000009.npz").exists()


def test_a_run_is_resumed_from_wherever_one_is(recipe, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert train(recipe, "--epochs", 1, "--train-source", "train.de", "--run-folder", "run") == 0
    (tmp_path / "run" / "model.npz").unlink()
    monkeypatch.chdir(elsewhere)
    assert train("--resume", "../run") == 0


def test_a_run_goes_on_where_its_data_have_moved_to(recipe, tmp_path, capsys):
    run = tmp_path / "run"
    assert train(recipe, "--epochs", 1, "--train-source", "train.de", "--run-folder", run) == 0
    (run / "model.npz").unlink()
    moved = (tmp_path / "train.de").rename(tmp_path / "moved.de")
    assert train("--resume", run) == 1
    assert "train.de: No such file" in capsys.readouterr().err
    assert train("--resume", run, "--train-source", moved.name) == 0
    assert main(["evaluate", str(run), "--split", "train"]) == 0  # as does any command after it
    (run / "model.npz").unlink()
    assert train("--resume", run) == 0
    moved = moved.rename(tmp_path / "again.de")
    assert train("--resume", run, "--train-source", moved) == 0  # of a run that is over, too
    assert main(["evaluate", str(run), "--split", "train"]) == 0
    assert train("--resume", run, "--data-dir", "x") == 1
    assert "data_dir='x' is for corpus='multi30k'" in capsys.readouterr().err


@pytest.mark.parametrize("left", ["training.lock", "loss.png.1.tmp", "epochs/epoch-0003.npz.1.tmp"])
def test_a_run_that_is_over_says_so_and_puts_right_what_a_killed_one_left(left, run_copy, capsys):
    before = contents(run_copy)
    (run_copy / left).write_bytes(b"half")
    assert train("--resume", run_copy) == 0
    assert f"{run_copy} is trained to its end; there is nothing" in capsys.readouterr().err
    assert contents(run_copy) == before


def test_a_picture_that_a_killed_one_has_not_drawn_is_drawn(run_copy, capsys):
    before = contents(run_copy)
    (run_copy / "learning_rate.png").unlink()
    assert train("--resume", run_copy) == 0
    assert contents(run_copy) == before


def test_on_a_full_disk_it_is_said_which_picture_was_not_drawn(run_copy, monkeypatch, capsys):
    def full(figure, file, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    picture = run_copy / "loss.png"
    picture.unlink()
    before = contents(run_copy)
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    assert train("--resume", run_copy) == 0
    said = f"no picture of it was made: {picture}: No space left on device\n"
    assert said in capsys.readouterr().err
    assert contents(run_copy) == before
