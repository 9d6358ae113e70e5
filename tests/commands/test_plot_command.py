import os

import pytest

from minitransformer.commands.cli import main

PNG = b"\x89PNG\r\n"


def test_the_curves_are_drawn_into_the_run_folder(run_copy, capsys):
    files = [run_copy / "loss.png", run_copy / "learning_rate.png"]
    for file in files:
        file.unlink()
    assert main(["plot", str(run_copy)]) == 0
    assert capsys.readouterr().out == "".join(f"{file}\n" for file in files)
    assert all(file.read_bytes().startswith(PNG) for file in files)


def test_a_run_under_way_can_be_drawn(unfinished):
    metrics = unfinished / "metrics.jsonl"
    metrics.write_bytes(metrics.read_bytes()[:-3])  # the trainer is writing its last line
    assert main(["plot", str(unfinished)]) == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes")
def test_a_picture_takes_the_place_of_a_link_or_a_pipe_and_writes_into_neither(run_copy, tmp_path):
    """A folder from elsewhere may hold both."""
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    files = [run_copy / "loss.png", run_copy / "learning_rate.png"]
    for file in files:
        file.unlink()
    files[0].symlink_to(mine)
    os.mkfifo(files[1])
    assert main(["plot", str(run_copy)]) == 0
    assert all(file.read_bytes().startswith(PNG) for file in files)
    assert mine.read_text() == "mine"
