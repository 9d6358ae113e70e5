"""A model is its configuration, its vocabulary and its weights; a training its recipe and text too.

What is exchanged under a run is refused by who would be misled: ``test_every_run_file.py``.
"""

import gzip
import hashlib
import os
import re

import pytest
from run_files import contents, edit_config, edit_states
from tiny_run import record, tiny_recipe, tiny_trainer, with_scores

from minitransformer.commands.cli import main
from minitransformer.core.regular_file import open_regular, read_regular
from minitransformer.data.text.vocabulary import Vocabulary, VocabularyError
from minitransformer.inference.translator import Translator
from minitransformer.runs.checkpoint.file import RunError, load_checkpoint
from minitransformer.tasks.text import TextTask
from minitransformer.training.recipe import Recipe

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


# Regular files


def test_a_regular_file_is_read_and_a_link_to_one(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for name in ("file", "link"):
        assert read_regular(tmp_path / name, 3) == b"abc"
        with open_regular(tmp_path / name) as file:
            assert file.read() == b"abc"


@pytest.mark.parametrize("name", ["metrics.jsonl", "metrics.jsonl.{process}.tmp"])
def test_a_training_writes_nothing_to_where_a_link_leads(unfinished, name, tmp_path):
    link = unfinished.path / name.format(process=os.getpid())
    link.unlink(missing_ok=True)
    link.symlink_to(tmp_path / "elsewhere")
    unfinished.log.forget_after(0, 0)
    unfinished.log.append({"kind": "train", "step": 1})
    assert not (tmp_path / "elsewhere").exists()


def test_a_piece_that_is_no_text_makes_a_vocabulary_none(run):
    """The model of sentencepiece loads, and fails when the piece is asked for."""
    content = run.attached["vocabulary"].read_bytes().replace("▁b".encode(), b"\xe2\x96\xff\x62", 1)
    with pytest.raises(VocabularyError, match="this is no vocabulary of minitransformer"):
        Vocabulary(content)


# Never from zero in silence


@pytest.mark.filterwarnings("ignore:passed over")
def test_starting_over_sets_aside_what_was_trained_and_ends_as_it_did(unfinished, original, capsys):
    for path in unfinished.checkpoints.iterdir():
        os.truncate(path, 1000)
    trained_once = contents(unfinished.path)
    (unfinished.path / "notes.txt").write_text("mine")
    for number in (1, 2):
        assert main(["train", "--resume", str(unfinished.path), "--start-over"]) == 0
        aside = unfinished.path / f"before-{number}"
        assert f"what was trained is now in {aside}" in capsys.readouterr().err
        assert record(unfinished.path) == record(original)
    assert trained_once == contents(unfinished.path / "before-1")
    assert record(unfinished.path / "before-2") == record(original)  # a whole run folder
    assert (unfinished.path / "notes.txt").read_text() == "mine"


def test_starting_over_takes_the_text_as_it_is_now(unfinished, tmp_path):
    for path in (tmp_path / "corpus").glob("train.*"):
        path.write_text(path.read_text().replace("b", "d"))
    with pytest.raises(RunError, match="the training data have changed"):
        tiny_trainer(Recipe.of_run(unfinished), unfinished.path)
    assert main(["train", "--resume", str(unfinished.path), "--start-over"]) == 0
    assert main(["train", "--resume", str(unfinished.path)]) == 0  # and it is over


def test_epochs_needed_by_either_checkpoint_are_there(tmp_path):
    """Who has lost the newest checkpoint goes back to the one before, and needs its best epoch."""
    recipe = tiny_recipe(tmp_path / "corpus", epochs=6, average=1, save_every=1000)
    trainer = with_scores(tiny_trainer(recipe, tmp_path / "run"), 5.0, 1.0, 9.0, 2.0, 3.0, 4.0)
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
