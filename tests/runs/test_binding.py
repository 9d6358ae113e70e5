"""A model is its configuration, its vocabulary and its weights; a training its recipe and text too.

What is exchanged under a run is refused by who would be misled: ``test_every_run_file.py``.
"""

import gzip
import hashlib
import re

import pytest
from run_files import edit_config, edit_states
from tiny_run import record

from minitransformer.commands.cli import main
from minitransformer.inference.translator import Translator
from minitransformer.runs.checkpoint.file import RunError, load_checkpoint
from minitransformer.tasks.text import TextTask

TRAIN = ["train", "--resume"]


# What may change


def test_a_run_may_move_be_packed_and_be_saved_more_often(original, unfinished, tmp_path):
    """Where the text is, how it is packed, what is logged and when: the same model comes of it."""
    for path in (tmp_path / "corpus").iterdir():
        with gzip.open(f"{path}.gz", "wb") as file:
            file.write(path.read_bytes().replace(b"\n", b"\r\n"))
        path.unlink()
    text = unfinished.config.read_text()
    unfinished.config.write_text(re.sub(r"\.(source|target)\b", r".\1.gz", text))
    edit_config(unfinished.path, lambda config: config["recipe"]["training"].update(save_every=2))
    max(unfinished.checkpoints.iterdir()).unlink()  # so that there is a step to make
    assert main([*TRAIN, str(unfinished.path)]) == 0
    assert record(unfinished.path) == record(original)


# Folders of an older release


def without_a_note(state):
    del state["bound"]


def without_a_kind(state):
    """As of a time when there was none but transformers."""
    assert state["bound"]["model"].pop("kind") == "transformer"


def without_a_learners_file(state):
    assert state["bound"].pop("own") == ""


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("written", "warned"), [(without_a_note, 1), (without_a_kind, 0), (without_a_learners_file, 0)]
)
def test_a_folder_of_an_older_release_is_used(written, warned, original, unfinished, capsys):
    run = unfinished.path
    edit_states(run.rglob("*.npz"), written)
    if written is without_a_kind:
        edit_config(
            run, lambda config: [c["model"].pop("kind") for c in (config, config["recipe"])]
        )
    for command in ["info", run], ["translate", run, "bao"], ["evaluate", run], [*TRAIN, run]:
        assert main([*map(str, command)]) == 0
        errors = capsys.readouterr().err
        assert errors.count(f"{run} is of an older release, which did not note") == warned, command
    assert record(run) == record(original)  # which notes it again


def test_a_model_larger_than_its_checkpoint_is_refused_before_it_is_built(run, monkeypatch):
    edit_states(run.path.rglob("*.npz"), without_a_note)
    edit_config(run.path, lambda config: config["model"].update(num_encoder_layers=1000))
    monkeypatch.setattr("minitransformer.runs.parameters.new_model", None)
    with (
        pytest.warns(UserWarning, match="older release"),
        pytest.raises(RunError, match="holds 1,728 parameters, and the configuration is of"),
    ):
        Translator.load(run.path, "cpu")


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
