"""The plan, ``lessons/README.md``: what it says of lessons, functions and hours is so."""

import re
from pathlib import Path

import pytest

from minitransformer.course.exercises import exercise_names, parts_of

LESSONS = Path(__file__).parents[2] / "lessons"
PLAN = (LESSONS / "README.md").read_text(encoding="utf-8")
ROWS = {
    row[:2]: [cell.strip() for cell in row.split("|")]
    for row in re.findall(r"^\| \[(\d\d\].*)\|$", PLAN, re.MULTILINE)
}
SOURCES = {source.stem[:2]: source for source in sorted(LESSONS.glob("[0-9][0-9]_*.py"))}
TO_READ = {
    "half an hour": 30,
    "three quarters of an hour": 45,
    "an hour": 60,
    "an hour and a quarter": 75,
    "an hour and a half": 90,
}
each_lesson = pytest.mark.parametrize("number", SOURCES)


def minutes_of(number):
    """Of a lesson as it says itself: to read, for its functions of own.py, for its exercises."""
    label = re.search(r"^# \| Time \| (.*?) to read", SOURCES[number].read_text("utf-8"), re.M)[1]
    own = sum(part.minutes for part in parts_of("own") if part.lesson == number)
    named = [name for name in exercise_names() if name == f"ex{number}"]
    return TO_READ[label], own, sum(part.minutes for name in named for part in parts_of(name))


def sums_of(numbers):
    return map(sum, zip(*map(minutes_of, numbers), strict=True))


def numbers_in(text):
    """The lessons that a cell names; ``[04](…) to [07](…)`` are those between in the plan, too."""
    found, order = [], list(ROWS)
    for first, last in re.findall(r"\[(\d\d)\]\([^)]*\)(?: to \[(\d\d)\])?", text):
        found += order[order.index(first) : order.index(last or first) + 1]
    return found


def assert_hours(said, minutes):
    assert abs(int(said.split()[0]) - minutes / 60) <= 0.5, f"{minutes / 60} h"


def test_the_drawing_has_each_function_of_own_with_its_lesson():
    drawing = (LESSONS / "model.svg").read_text(encoding="utf-8")
    expected = {(name, part.lesson) for part in parts_of("own") for name in part.functions}
    expected = {(name, lesson) for name, lesson in expected if not name.endswith("_backward")}
    assert set(re.findall(r">(\w+) <tspan class=\"n\">(\d\d)<", drawing)) == expected


@each_lesson
def test_each_section_of_a_lesson_is_core_or_deeper(number):
    text = SOURCES[number].read_text(encoding="utf-8")
    sections = [int(n) for n in re.findall(r"^# ## (\d+) · (?!Exercises)", text, re.MULTILINE)]
    marked = []
    for first, last in re.findall(r"(\d+)(?:–(\d+))?", ", ".join(ROWS[number][3:5])):
        marked += range(int(first), int(last or first) + 1)
    assert sorted(marked) == sections


@each_lesson
def test_the_minutes_of_a_lesson_are_those_that_it_names(number):
    assert ROWS[number][5] == " + ".join(map(str, minutes_of(number)))


def test_the_hours_of_all_lessons_are_the_sums_of_theirs():
    said = re.search(r"(\d+) hours to read, (\d+) to write `own.py`, and (\d+) for the exer", PLAN)
    for hours, minutes in zip(said.groups(), sums_of(SOURCES), strict=True):
        assert_hours(hours, minutes)


@pytest.mark.parametrize("route", re.findall(r"^\| (an? .*\d h .*) \|$", PLAN, re.MULTILINE))
def test_the_hours_of_a_route_are_those_of_its_lessons(route):
    _, way, to_read, to_write = (cell.strip() for cell in route.split("|"))
    read, own, exercises = sums_of(numbers_in(way))
    written = ("`own.py`" in way) * own + ("exercises" in way) * exercises
    assert_hours(to_read, read)
    assert_hours(to_write or "0 h", written)
