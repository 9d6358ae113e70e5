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


@pytest.mark.parametrize("folder", ["answers", "lessons/exercises", "exercises", "."])
def test_the_file_is_found_below_the_current_folder(folder, answer, capsys):
    answer(folder=folder)
    main(["check", "ex07"])
    assert "1 of 4 right" in capsys.readouterr().out


def test_your_copy_comes_before_the_file_it_was_copied_from(answer, capsys):
    answer("*", folder="lessons/exercises")
    answer("/", folder="answers")
    main(["check", "ex07"])
    assert "1 of 4 right" in capsys.readouterr().out


def test_your_copy_is_found_from_within_the_lessons(answer, tmp_path, monkeypatch, capsys):
    answer("*", folder="lessons/exercises")
    answer("/", folder="answers")
    monkeypatch.chdir(tmp_path / "lessons")
    main(["check", "ex07"])
    assert "1 of 4 right" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["ex7", "07", "7"])
def test_an_exercise_may_be_called_by_its_number(name, answer, capsys):
    answer()
    main(["check", name])
    assert "ex07, ex07.py\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "named", [["ex07", "--file", "mine/ex07.py"], ["--file", "mine/ex07.py"], ["mine/ex07.py"]]
)
def test_a_file_can_be_named(named, answer, capsys):
    answer("*", folder="answers")
    answer("/", folder="mine")
    main(["check", *named])
    assert "1 of 4 right" in capsys.readouterr().out


def test_a_named_file_that_is_not_there_is_not_replaced_by_another(answer, capsys):
    answer()
    assert main(["check", "mine/ex07.py"]) == 2
    assert "there is no file mine/ex07.py" in capsys.readouterr().err


def test_a_file_that_does_not_run_exits_with_2(answer, tmp_path, capsys):
    (tmp_path / "ex07.py").write_text("1 / 0")
    assert main(["check", "ex07"]) == 2
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_what_a_file_prints_goes_to_standard_error(answer, tmp_path, capsys):
    (tmp_path / "ex07.py").write_text("print('hello')\n" + ANSWER.format(operator="/"))
    main(["check", "ex07"])
    captured = capsys.readouterr()
    assert "hello" not in captured.out
    assert captured.err == "hello\n"


def test_the_file_of_another_exercise_exits_with_2(answer, capsys):
    answer()
    assert main(["check", "ex08", "--file", "ex07.py"]) == 2
    error = capsys.readouterr().err
    assert error == (
        "minitransformer check: ex07.py has no function of ex08, such as "
        f"{parts_of('ex08')[0].functions[0]}\n"
    )
