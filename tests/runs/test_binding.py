"""A model is its configuration, its vocabulary and its weights; a training its recipe and text too.

What is exchanged under a run is refused by who would be misled: ``test_every_run_file.py``.
"""

import gzip
import hashlib
import json
import re

import pytest
from tiny_run import record, tiny_trainer

from minitransformer.commands.cli import main
from minitransformer.inference.translator import Translator
from minitransformer.runs.checkpoint.file import RunError, load_checkpoint, save_checkpoint
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.text import TextTask
from minitransformer.training.recipe import Recipe

TRAIN = ["train", "--resume"]


@pytest.fixture
def run(copied):
    """A copy of a run that is over, and of its corpus, to be harmed."""
    return copied("finished")[0].path


@pytest.fixture
def unfinished(run):
    (run / "model.npz").unlink()
    return run


def edit(run, *sections, **changes):
    """Change fields of config.json."""
    config = json.loads((run / "config.json").read_text())
    section = config
    for name in sections:
        section = section[name]
    section.update(changes)
    (run / "config.json").write_text(json.dumps(config))


def resume(run):
    trainer = tiny_trainer(Recipe.of_run(RunFolder(run)), run)
    trainer.train()
    return trainer


def translate(run):
    return Translator.load(run, "cpu").translate(["bao gi ku", "du"], beam_size=1)


# What may change


def test_a_run_may_move_be_packed_and_be_saved_more_often(original, unfinished, tmp_path):
    """Where the text is, how it is packed, what is logged and when: the same model comes of it."""
    for path in (tmp_path / "corpus").iterdir():
        with gzip.open(f"{path}.gz", "wb") as file:
            file.write(path.read_bytes().replace(b"\n", b"\r\n"))
        path.unlink()
    text = (unfinished / "config.json").read_text()
    (unfinished / "config.json").write_text(re.sub(r"\.(source|target)\b", r".\1.gz", text))
    edit(unfinished, "recipe", "training", save_every=2)
    for path in sorted((unfinished / "checkpoints").iterdir())[-1:]:
        path.unlink()  # so that there is a step to make
    resume(unfinished)
    assert record(unfinished) == record(original)


# Folders of an older release


def made_old(run):
    """Take from all checkpoints what older releases did not write."""
    for path in run.rglob("*.npz"):
        arrays, state = load_checkpoint(path)
        del state["bound"]
        save_checkpoint(path, arrays, state)


@pytest.mark.filterwarnings("default")
def test_a_folder_of_an_older_release_is_used_with_one_warning(original, unfinished, capsys):
    made_old(unfinished)
    run = str(unfinished)
    for command in ["info", run], ["translate", run, "bao"], ["evaluate", run], [*TRAIN, run]:
        assert main(command) == 0
        errors = capsys.readouterr().err
        assert errors.count(f"{run} is of an older release, which did not note") == 1, command
    assert record(unfinished) == record(original)  # which notes it again


def test_a_folder_that_names_no_kind_of_model_is_that_of_a_transformer(original, unfinished):
    """As an older release has written it, which had no other."""
    sections = json.loads((unfinished / "config.json").read_text())
    for model in (sections["model"], sections["recipe"]["model"]):
        assert model.pop("kind") == "transformer"
    (unfinished / "config.json").write_text(json.dumps(sections))
    for path in unfinished.rglob("*.npz"):
        arrays, state = load_checkpoint(path)
        assert state["bound"]["model"].pop("kind") == "transformer"
        save_checkpoint(path, arrays, state)
    resume(unfinished)
    assert record(unfinished)[0] == record(original)[0]
    assert translate(unfinished) == translate(original)


def test_a_run_that_notes_no_file_of_a_learners_goes_on_without_one(original, unfinished):
    """As an older release has written it, which knew of none."""
    for path in unfinished.rglob("*.npz"):
        arrays, state = load_checkpoint(path)
        assert state["bound"].pop("own") == ""
        save_checkpoint(path, arrays, state)
    assert main([*TRAIN, str(unfinished)]) == 0
    assert record(unfinished)[0] == record(original)[0]


def test_a_model_larger_than_its_checkpoint_is_refused_before_it_is_built(run, monkeypatch):
    made_old(run)
    edit(run, "model", num_encoder_layers=1000)
    monkeypatch.setattr("minitransformer.runs.parameters.new_model", None)
    with (
        pytest.warns(UserWarning, match="older release"),
        pytest.raises(RunError, match="holds 1,728 parameters, and the configuration is of"),
    ):
        translate(run)


def test_every_checkpoint_notes_what_it_is_bound_to(original):
    states = {path.name: load_checkpoint(path)[1]["bound"] for path in original.rglob("*.npz")}
    assert len(states) >= 5
    noted = states["model.npz"]
    assert all(state == noted for state in states.values())
    assert noted["model"]["num_heads"] == 2
    assert noted["recipe"]["seed"] == 0
    assert not {"data_dir", "train_source", "save_every"} & noted["recipe"].keys()
    assert noted["texts"].keys() == {"training", "validation"}


def test_texts_are_told_apart_by_each_of_them_and_by_their_number():
    pairs = [("ein", "one"), ("zwei", "two")]
    others = [[("ein", "one"), ("zwei", "too")], [("eins", "one"), ("zwei", "two")], pairs[:1]]
    found = {TextTask.fingerprint(texts) for texts in [pairs, *others, [("one",)], [("two",)]]}
    assert len(found) == 6
    # As checkpoints of older releases have noted it.
    digest = hashlib.sha256(b"ein\none\nzwei\ntwo\n").hexdigest()
    assert TextTask.fingerprint(pairs) == f"2 pairs of SHA-256 {digest}"
