import json
import signal
import textwrap
from pathlib import Path

import pytest
from endless import ENDLESS, STOPPED

from minitransformer.commands import apart, check
from minitransformer.commands.cli import main
from minitransformer.course.exercises import exercise_names, parts_of

SOLUTIONS = Path(__file__).parents[2] / "lessons/solutions"
ANSWER = "def dx_when_scaled(dx, c):\n    return dx {operator} c\n"


@pytest.fixture
def answer(tmp_path, monkeypatch):
    """Write an answer to exercise 07 below the current folder."""
    monkeypatch.chdir(tmp_path)

    def write(operator="/", folder="."):
        path = tmp_path / folder / "ex07.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(ANSWER.format(operator=operator))

    return write


@pytest.fixture
def answers(answer, tmp_path):
    """One of exercise 07 is right; of own.py ``relu`` is, and ``linear`` is wrong."""
    answer(folder="answers")
    solution = (SOLUTIONS / "own.py").read_text(encoding="utf-8")
    end = solution.index("\ndef ", solution.index("def relu_backward("))
    two = solution[:end].replace("y += bias", "y -= bias")
    (tmp_path / "answers/own.py").write_text(two, encoding="utf-8")
    return tmp_path / "answers"


def rows(out):
    """By its first word what else a line says."""
    return {line.split()[0]: line.split()[1:] for line in out.splitlines()}


@pytest.mark.usefixtures("answers")
def test_without_an_exercise_it_says_how_far_one_is_with_each_lesson_and_with_all(said):
    shown = rows(said("check").out)
    minutes = {name: [part.minutes for part in parts_of(name)] for name in exercise_names()}
    count = sum(map(len, minutes.values())) - len(minutes["own"])
    assert shown["07"] == ["0", "of", "1", "1", "of", "4", f"{sum(minutes['ex07']) + 35}", "min"]
    of_02 = [part for part in parts_of("own") if part.lesson == "02"]
    assert shown["02"][:6] == ["1", "of", f"{len(of_02)}", "0", "of", "4"]
    assert shown["02"][-2:] == ["WRONG", "linear"]
    hours = f"{(sum(map(sum, minutes.values())) - 10 - 10) / 60:.0f}"
    assert shown["all"] == ["1", "of", "33", "1", "of", f"{count}", hours, "h", "WRONG", "1"]
    assert shown["next:"] == ["mend", "linear,", "see", "lesson", "02"]


def test_where_no_file_is_all_of_it_is_to_do(tmp_path, monkeypatch, said):
    monkeypatch.chdir(tmp_path)
    shown = rows(said("check").out)
    assert shown["all"][:3] == ["0", "of", "33"]
    assert shown["next:"][:4] == ["cp", "-r", "lessons/exercises", "answers,"]


def test_own_is_the_file_that_the_environment_names(answers, monkeypatch, said, capsys):
    (answers / "own.py").rename(answers.parent / "mine.py")
    monkeypatch.setenv("MINITRANSFORMER_OWN", "mine.py")
    said("check", "own", "relu")
    assert "WRONG linear" in said("check").out
    monkeypatch.setenv("MINITRANSFORMER_OWN", "missing.py")
    assert main(["check"]) == 2
    assert "there is no file missing.py" in capsys.readouterr().err


def overview(capfd):
    status = main(["check", "--json"])
    return status, json.loads(capfd.readouterr().out)


def test_as_json_it_says_of_each_part_what_the_check_of_its_exercise_says(answers, capfd):
    (answers / "own.py").write_text("print('hello')\n" + (answers / "own.py").read_text())
    status, said = overview(capfd)
    assert status == 0
    everything = [(name, part.functions[0]) for name in exercise_names() for part in parts_of(name)]
    assert sorted((p["exercise"], p["part"]) for p in said["parts"]) == sorted(everything)
    assert said["counts"] == {
        "right": 2,
        "WRONG": 1,
        "to do": len(everything) - 3,
        "not checked": 0,
    }
    (wrong,) = [part for part in said["parts"] if part["status"] == "WRONG"]
    assert main(["check", "own", "linear"]) == 1
    assert wrong["explanation"] in textwrap.dedent(capfd.readouterr().out)
    assert wrong["file"] == str(Path("answers/own.py"))
    assert said["minutes_left"] == sum(
        p["minutes"] for p in said["parts"] if p["status"] != "right"
    )


@pytest.mark.parametrize(("text", "says"), [
    ("import os\nos._exit(0)", "its process ended with exit status 0"),
    ("while True: pass",
     f"more than {check.LONGEST} s (ex08.py, line 1): is there a loop that never ends?"),
    ("1 / 0", "ZeroDivisionError"),
])  # fmt: skip
def test_a_file_that_cannot_be_checked_is_named_and_the_others_are_checked(
    text, says, answers, monkeypatch, capfd
):
    def run_apart(function, seconds, paths):
        return apart.run_apart(function, 3 if "ex08" in paths else seconds, paths=paths)

    monkeypatch.setattr(check, "run_apart", run_apart)  # the others have the time they need
    monkeypatch.setattr(check, "exercise_names", lambda: ["ex07", "ex08", "own"])
    (answers / "ex08.py").write_text(text)
    status, said = overview(capfd)
    assert status == 2
    assert list(said["errors"]) == ["ex08"]
    assert says in said["errors"]["ex08"]
    assert said["counts"]["right"] == 2
    assert said["counts"]["not checked"] == len(parts_of("ex08"))
    assert {p["status"] for p in said["parts"] if p["exercise"] == "ex08"} == {"not checked"}


def test_a_part_is_right_or_to_do_and_all_are_counted(answer, capsys):
    answer()
    assert main(["check", "ex07"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ex07, ex07.py"
    assert lines[1].split() == ["right", "dx_when_scaled", "10", "min"]
    assert lines[2].split() == ["to", "do", "lean_layer_norm", "25", "min"]
    assert lines[-1] == "1 of 4 right"


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="nothing stops a loop here")
@pytest.mark.parametrize(("text", "status", "says"), [
    ("def dx_when_scaled(dx, c):\n    {}\n", 1, "WRONG  dx_when_scaled"),
    ("{}\n", 2, "answers/ex07.py raised TimeoutError"),
    ("{}\n", 2, "answers/own.py raised TimeoutError"),
], ids=["in a function", "in a file", "in own.py"])  # fmt: skip
def test_a_loop_that_never_ends_is_stopped(answers, capsys, text, status, says):
    name = "own" if "own" in says else "ex07"
    (answers / f"{name}.py").write_text(text.format(ENDLESS))
    assert main(["check", name]) == status
    said = "".join(capsys.readouterr())
    assert says in said
    assert STOPPED in said


def test_a_wrong_part_says_what_is_wrong(answer, capsys):
    answer(operator="*")
    assert main(["check", "ex07"]) == 1
    out = capsys.readouterr().out
    assert "  WRONG  dx_when_scaled" in out
    assert "\n         dx_when_scaled(dx, 4) is " in out
    assert "0 of 4 right" in out


LESSONS = "lessons/exercises"
FOUND = [  # the right answer, a wrong one, from where it is checked, and how it is asked for
    *((folder, None, ".", "ex07") for folder in ("answers", LESSONS, "exercises", ".")),
    ("answers", LESSONS, ".", "ex07"),  # your copy comes before the file it was copied from
    ("answers", LESSONS, "lessons", "ex07"),
    *((".", None, ".", name) for name in ("ex7", "07", "7")),
    *(("mine", "answers", ".", named) for named in ("ex07 --file mine/ex07.py", "mine/ex07.py")),
    ("mine", "answers", ".", "--file mine/ex07.py"),
]


@pytest.mark.parametrize(("right", "wrong", "here", "named"), FOUND)
def test_the_file_is_found(right, wrong, here, named, answer, tmp_path, monkeypatch, capsys):
    answer("/", folder=right)
    if wrong:
        answer("*", folder=wrong)
    monkeypatch.chdir(tmp_path / here)
    assert main(["check", *named.split()]) == 1
    out = capsys.readouterr().out
    assert out.startswith("ex07, ")
    assert "1 of 4 right" in out


@pytest.mark.parametrize(("content", "named", "says"), [
    (ANSWER, "mine/ex07.py", "there is no file mine/ex07.py"),  # and another does not replace it
    (ANSWER, "ex08", "there is no answers/ex08.py, ../answers/ex08.py, lessons/exercises/ex08.py, "
     "exercises/ex08.py, ex08.py here"),
    ("1 / 0", "ex07", "ZeroDivisionError"),
    (ANSWER, "ex08 --file ex07.py",
     f"ex07.py has no function of ex08, such as {parts_of('ex08')[0].functions[0]}\n"),
])  # fmt: skip
def test_what_cannot_be_checked_exits_with_2(content, named, says, answer, tmp_path, refused):
    (tmp_path / "ex07.py").write_text(content.format(operator="/"))
    assert says in refused("check", *named.split(), status=2)


def test_what_a_file_prints_goes_to_standard_error(answer, tmp_path, capsys):
    (tmp_path / "ex07.py").write_text("print('hello')\n" + ANSWER.format(operator="/"))
    main(["check", "ex07"])
    captured = capsys.readouterr()
    assert "hello" not in captured.out
    assert captured.err == "hello\n"
