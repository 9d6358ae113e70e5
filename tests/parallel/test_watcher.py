"""The watcher names the process that died first, however late it looks itself."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import HANGS, until

from minitransformer.parallel import watcher


class Watched:
    """Three processes, played by pipes of this one, and the watcher."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        for number in range(3):
            os.mkfifo(folder / str(number))
        names = [f"rank {number}" for number in range(3)]
        self.watcher = subprocess.Popen(
            [sys.executable, "-I", "-S", watcher.__file__, folder, *names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.watcher.stdout.readline() == "watching\n"
        self.pipes = [os.open(folder / str(number), os.O_RDWR) for number in range(3)]

    def end(self, number, word=b""):
        os.write(self.pipes[number], word)
        os.close(self.pipes[number])

    def said(self):
        """What the watcher says, who has ended and left nothing behind."""
        _, said = self.watcher.communicate(timeout=HANGS)
        assert self.watcher.returncode == 0
        assert not self.folder.exists()
        return said


@pytest.fixture
def watched(tmp_path):
    return Watched(tmp_path / "folder")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep no order")
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_first_to_die_is_named_though_all_have_died_when_it_looks(watched, order):
    process = watched.watcher.pid
    state = Path(f"/proc/{process}/stat")
    until(lambda: state.read_text().split()[2] == "S")  # it waits, all pipes open
    os.kill(process, signal.SIGSTOP)
    for number in order:
        watched.end(number)
    os.kill(process, signal.SIGCONT)
    assert f": rank {order[0]} has died, and all others end with it" in watched.said()


def test_those_who_say_goodbye_are_not_named(watched):
    for number in (1, 0, 2):
        watched.end(number, watcher.GOODBYE)
    assert watched.said() == ""


def test_one_that_has_said_goodbye_is_not_the_one_that_died(watched):
    watched.end(0, watcher.GOODBYE)
    watched.end(2)
    assert "rank 2 has died" in watched.said()
    os.close(watched.pipes[1])


def test_nobody_is_named_where_one_has_said_itself_why_it_ends_the_others(watched):
    watched.end(1, watcher.TOLD)
    assert watched.said() == ""
    watched.end(0)
    watched.end(2)
