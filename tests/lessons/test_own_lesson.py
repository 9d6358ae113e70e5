"""The last lesson runs on the reader's file, and on the solution until all of that is right."""

import shutil
from pathlib import Path

import matplotlib
import pytest

LESSONS = Path(__file__).parents[2] / "lessons"
WHOLE = (LESSONS / "solutions/own.py").read_text(encoding="utf-8")
STUBS = (LESSONS / "exercises/own.py").read_text(encoding="utf-8")
LESSON = (LESSONS / "18_your_own_transformer.py").read_text(encoding="utf-8")
BEGINNING = LESSON.partition("# To train on, we take")[0]


@pytest.mark.parametrize(("answers", "said", "runs_on"), [
    (None, "", "lessons/solutions/own.py"),
    (WHOLE, "", "answers/own.py"),
    (STUBS, "0 of 23 right", "lessons/solutions/own.py"),
    (WHOLE + "\n\ndef relu(x):\n    return x, x\n", "22 of 23 right", "lessons/solutions/own.py"),
    ("def relu(x:\n", "cannot be run", "lessons/solutions/own.py"),
], ids=["none", "whole", "stubs", "one wrong", "no Python"])  # fmt: skip
def test_the_lesson_says_whose_file_it_runs_on(
    answers, said, runs_on, tmp_path, monkeypatch, capsys
):
    (tmp_path / "lessons/solutions").mkdir(parents=True)
    shutil.copy(LESSONS / "solutions/own.py", tmp_path / "lessons/solutions/own.py")
    if answers is not None:
        (tmp_path / "answers").mkdir()
        (tmp_path / "answers/own.py").write_text(answers, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    lesson = {}
    with matplotlib.rc_context():  # the style of lessons is for no other test
        exec(BEGINNING, lesson)
    assert lesson["OWN"].as_posix() == runs_on
    assert said in capsys.readouterr().out
