"""What the tests of the commands share: a run trained to its end, and copies of it to harm."""

import shutil

import pytest
from tiny_translator import train_once


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    return train_once(tmp_path_factory)


@pytest.fixture
def run_copy(run_folder, tmp_path):
    return shutil.copytree(run_folder, tmp_path / "a copy")


@pytest.fixture
def unfinished(run_copy):
    (run_copy / "model.npz").unlink()
    return run_copy
