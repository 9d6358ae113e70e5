import pytest

from minitransformer.commands.cli import main
from minitransformer.course.exercises import exercise_names, parts_of

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


def test_without_an_exercise_all_are_listed_with_their_times(capsys):
    assert main(["check"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == sum(len(parts_of(name)) for name in exercise_names())
    assert "ex07  rms_norm                        45 min" in lines


def test_a_part_is_right_or_to_do_and_all_are_counted(answer, capsys):
    answer()
    assert main(["check", "ex07"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ex07, ex07.py"
    assert lines[1].split() == ["right", "dx_when_scaled", "10", "min"]
    assert lines[2].split() == ["to", "do", "lean_layer_norm", "25", "min"]
    assert lines[-1] == "1 of 4 right"


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
    ("1 / 0", "ex07", "ZeroDivisionError"),
    (ANSWER, "ex08 --file ex07.py",
     f"ex07.py has no function of ex08, such as {parts_of('ex08')[0].functions[0]}\n"),
])  # fmt: skip
def test_what_cannot_be_checked_exits_with_2(content, named, says, answer, tmp_path, capsys):
    (tmp_path / "ex07.py").write_text(content.format(operator="/"))
    assert main(["check", *named.split()]) == 2
    assert says in capsys.readouterr().err


def test_what_a_file_prints_goes_to_standard_error(answer, tmp_path, capsys):
    (tmp_path / "ex07.py").write_text("print('hello')\n" + ANSWER.format(operator="/"))
    main(["check", "ex07"])
    captured = capsys.readouterr()
    assert "hello" not in captured.out
    assert captured.err == "hello\n"
