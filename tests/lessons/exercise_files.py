"""What the tests of the lessons share: where things are, and a verdict on answers."""

from pathlib import Path

from minitransformer.course.exercises import check_exercise
from minitransformer.gradcheck.learner import load_file

LESSONS = Path(__file__).parents[2] / "lessons"


def stub_of(name):
    return LESSONS / "exercises" / f"{name}.py"


def solution_of(name):
    return LESSONS / "solutions" / f"{name}.py"


def functions_in(path):
    return vars(load_file(path))


def verdicts(name, **answers):
    """The verdict on each part, by its name, of the solution with some functions replaced."""
    report = check_exercise(name, {**functions_in(solution_of(name)), **answers})
    return {verdict.part.functions[0]: verdict for verdict in report.verdicts}


def only_wrong(name, part, **answers):
    """What is said of ``part``, which the answers must make the only wrong one."""
    found = verdicts(name, **answers)
    assert {key for key, verdict in found.items() if verdict.status == "WRONG"} == {part}
    return found[part].explanation
