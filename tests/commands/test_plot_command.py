import os

import pytest
from run_files import is_png


@pytest.fixture
def files(run_copy):
    """What is drawn, and is not there."""
    files = [run_copy / "loss.png", run_copy / "learning_rate.png"]
    for file in files:
        file.unlink()
    return files


def test_the_curves_are_drawn_into_the_run_folder(run_copy, files, said):
    assert said("plot", run_copy).out == "".join(f"{file}\n" for file in files)
    assert all(map(is_png, files))


def test_a_run_under_way_can_be_drawn(unfinished, said):
    metrics = unfinished / "metrics.jsonl"
    metrics.write_bytes(metrics.read_bytes()[:-3])  # the trainer is writing its last line
    said("plot", unfinished)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes")
def test_a_picture_takes_the_place_of_a_link_or_a_pipe_and_writes_into_neither(
    run_copy, files, tmp_path, said
):
    """A folder from elsewhere may hold both."""
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    files[0].symlink_to(mine)
    os.mkfifo(files[1])
    said("plot", run_copy)
    assert all(map(is_png, files))
    assert mine.read_text() == "mine"
