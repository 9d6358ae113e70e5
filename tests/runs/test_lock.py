"""One training a folder, shown with real processes."""

import errno
import os
import re
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest
from elsewhere import ended, python
from full_disk import full_disk
from tiny_run import tiny_recipe, trained

from minitransformer.runs import lock
from minitransformer.runs.lock import only_training
from minitransformer.runs.run_folder import RunFolder

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")

HOLD = """if True:
    import os, sys
    from minitransformer.runs.lock import only_training

    with only_training(sys.argv[1]):
        if sys.argv[2:] == ["and fork"]:
            told, tell = os.pipe()
            if os.fork() == 0:
                os.write(tell, b"I live")
                sys.stdin.readline()  # on, when the parent is killed
                os._exit(0)
            os.read(told, 6)
        print("held", flush=True)
        sys.stdin.readline()
"""


@contextmanager
def holder(folder, *arguments):
    """A process that holds the lock of the folder until it is killed or told to end."""
    command, pipe = [sys.executable, "-c", HOLD, folder, *arguments], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process


def hold(folder):
    with only_training(folder):
        pass


def test_the_message_names_the_process_that_trains(tmp_path):
    with holder(tmp_path) as process:
        named = f"{tmp_path} is under way: process {process.pid} on {socket.gethostname()}"
        since = r" since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d; wait for its"
        with pytest.raises(BlockingIOError, match=re.escape(named) + since):
            hold(tmp_path)
        process.stdin.close()


def test_on_a_full_disk_the_message_names_the_lock_and_none_is_left(tmp_path):
    with full_disk(), pytest.raises(OSError, match="File too large") as raised:
        hold(tmp_path)
    assert raised.value.filename == str(tmp_path / lock.NAME)
    assert not list(tmp_path.iterdir())


def test_the_lock_of_a_killed_process_dies_with_it(tmp_path):
    with holder(tmp_path) as process:
        process.kill()
    assert str(process.pid) in (tmp_path / "training.lock").read_text()
    with only_training(tmp_path):
        assert f"process {os.getpid()} " in (tmp_path / "training.lock").read_text()
    assert not list(tmp_path.iterdir())


def test_the_line_of_a_killed_process_is_gone_whole(tmp_path):
    path = tmp_path / "training.lock"
    path.write_text("process 1 on a machine of a rather long name\n" * 9)
    with only_training(tmp_path):
        assert re.fullmatch(rf"process {os.getpid()} on .*\n", path.read_text())


def test_a_lock_that_is_about_to_go_is_waited_for(tmp_path, monkeypatch):
    """As of a training that has just ended."""
    lock_it, tries = lock._lock, iter(range(9))

    def in_use_at_first(file):
        if next(tries) < 3:
            raise BlockingIOError
        lock_it(file)

    monkeypatch.setattr(lock, "PATIENCE", 60)
    monkeypatch.setattr(lock, "_lock", in_use_at_first)
    with only_training(tmp_path):
        assert next(tries) == 4


@needs_fork
def test_the_lock_of_a_killed_process_does_not_live_on_in_its_children(tmp_path):
    with holder(tmp_path, "and fork") as process:
        process.kill()
        process.wait()
        hold(tmp_path)  # the child waits for a line
        process.stdin.close()


FORK = """if True:
    import os, sys
    from pathlib import Path
    from minitransformer.runs.lock import only_training

    with only_training(sys.argv[1]):
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
            assert Path(sys.argv[1], "training.lock").exists()
            try:
                with only_training(sys.argv[1]):
                    pass
            except BlockingIOError:
                print("still held")
"""


@needs_fork
def test_a_child_that_ends_frees_nothing(tmp_path):
    """It leaves the block of the training as its parent does, and goes through all of its end."""
    done = python("-c", FORK, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "still held\n", "")
    assert not list(tmp_path.iterdir())


def test_a_file_removed_before_it_is_locked_is_not_the_lock(tmp_path, monkeypatch):
    """Between our opening and our locking it, the training that had locked it may end."""
    lock_it, removed = lock._lock, []

    def too_late(file):
        lock_it(file)
        if not removed:
            removed.append(file)
            (tmp_path / "training.lock").unlink()

    monkeypatch.setattr(lock, "_lock", too_late)
    with only_training(tmp_path):
        monkeypatch.undo()
        with pytest.raises(BlockingIOError):
            hold(tmp_path)


def test_a_link_in_place_of_the_lock_is_not_written_through(tmp_path):
    (tmp_path / "diary").write_text("dear diary")
    (tmp_path / "training.lock").symlink_to(tmp_path / "diary")
    with pytest.raises(OSError, match=r"training\.lock"):
        hold(tmp_path)
    assert (tmp_path / "diary").read_text() == "dear diary"


def no_locks(*_):
    raise OSError(errno.ENOLCK, "No locks available")


@pytest.mark.parametrize("without", [dict(fcntl=None, msvcrt=None), dict(_lock=no_locks)])
def test_without_locks_a_training_says_so_and_goes_on(without, tmp_path, monkeypatch):
    """On this platform, or on this file system."""
    for name, value in without.items():
        monkeypatch.setattr(lock, name, value)
    recipe = tiny_recipe(tmp_path / "corpus", epochs=1)
    with pytest.warns(UserWarning, match="see to it that nothing else trains there") as warned:
        trained(recipe, tmp_path / "run")
    assert len(warned) == 1
    assert (tmp_path / "run" / "model.npz").exists()


@needs_fork
def test_of_two_trainings_that_begin_together_exactly_one_trains(tmp_path):
    printed = ended("train_in_pairs.py", tmp_path, "6")
    trials = [[int(word) for word in line.split()] for line in printed.splitlines()]
    assert len(trials) == 6
    for trial, *children, first, second in trials:
        assert {first, second} == {0, 1}
        winner, loser = children if first == 0 else reversed(children)
        said = (tmp_path / f"run-{trial}-{loser}").read_text()
        taken = "holds a run already" in said  # where the winner was faster
        assert taken or f"process {winner} on " in said
        run = RunFolder(tmp_path / f"run-{trial}")
        steps = [entry["step"] for entry in run.log.entries() if entry["kind"] == "train"]
        assert steps == list(range(1, len(steps) + 1))
        assert run.model.exists()
        assert not (run.path / "training.lock").exists()
