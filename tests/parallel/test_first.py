"""What one of several processes touches for all."""

from pathlib import Path

import pytest

from minitransformer.parallel.first import OnFirst
from minitransformer.runs.run_folder import RunFolder


class Second:
    """Stands for a process that is not the first: it is told, and calls nothing."""

    def __init__(self, told):
        self.told, self.asked = told, []

    def first(self, function, *arguments):
        self.asked.append(function)
        return self.told


def test_a_folder_is_left_alone_by_all_processes_but_the_first(tmp_path):
    processes = Second(told="what the first has found")
    run = OnFirst(RunFolder(tmp_path / "run"), processes)
    assert run.load_config() == "what the first has found"  # where there is no run
    assert run.keep(own=b"pass") == "what the first has found"
    assert not (tmp_path / "run").exists()
    assert len(processes.asked) == 2


def test_its_log_is_left_alone_too(tmp_path):
    OnFirst(RunFolder(tmp_path), Second(told=None)).log.append({"kind": "train"})
    assert not list(tmp_path.iterdir())


def test_paths_are_told_without_asking_anybody(tmp_path):
    processes = Second(told=None)
    assert OnFirst(RunFolder(tmp_path), processes).config == Path(tmp_path) / "config.json"
    assert not processes.asked


def test_what_is_not_there_is_an_error_at_once(tmp_path):
    with pytest.raises(AttributeError, match="no attribute 'forget'"):
        OnFirst(RunFolder(tmp_path), Second(told=None)).forget()
