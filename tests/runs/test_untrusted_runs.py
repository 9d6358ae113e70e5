"""A run folder from anywhere: what it holds is files of the documented kinds, or an error."""

import os

import pytest
from run_files import contents
from tiny_run import record, tiny_recipe, tiny_trainer, with_scores

from minitransformer.commands.cli import main
from minitransformer.core.regular_file import IrregularFileError, open_regular, read_regular
from minitransformer.data.text.vocabulary import Vocabulary, VocabularyError
from minitransformer.runs.checkpoint.file import RunError, load_checkpoint
from minitransformer.training.recipe import Recipe

# Regular files


def test_a_regular_file_is_read_and_a_link_to_one(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for name in ("file", "link"):
        assert read_regular(tmp_path / name, 3) == b"abc"
        with open_regular(tmp_path / name) as file:
            assert file.read() == b"abc"


def test_neither_more_than_such_a_file_may_have_nor_a_folder_is_read(tmp_path):
    with open(tmp_path / "file", "wb") as file:
        file.truncate(10**12)  # which takes no room on the disk
    with pytest.raises(IrregularFileError, match="has 99 bytes at most, and this one more"):
        read_regular(tmp_path / "file", 99)
    with pytest.raises(IrregularFileError, match="this is no regular file"):
        open_regular(tmp_path)


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
