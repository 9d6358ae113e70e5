"""The programs of README and guides run and print what it says there that they print."""

import re
from pathlib import Path

import pytest

from minitransformer.cases import CASES
from minitransformer.commands.cli import main

ROOT = Path(__file__).parents[2]
README, CHECKS, CODE = (
    (ROOT / name).read_text(encoding="utf-8")
    for name in ("README.md", "docs/gradient_checks.md", "docs/code.md")
)


def program_and_output(page, first_line):
    """The Python block that begins with ``first_line``, and the first plain block after it."""
    match = re.search(
        rf"```python\n({re.escape(first_line)}\n.*?)```.*?\n\n```\n(.*?)```", page, re.DOTALL
    )
    return match.groups()


def comparable(text):
    """Without what differs between machines: rounding errors, seconds, the last digits."""
    text = re.sub(r"\d\.\de-1\d|\d\.\d+ s$|\d+\.\d\d(?=  WRONG)", "#", text, flags=re.MULTILINE)
    return re.sub(r"(\.\d{4})\d+", r"\1", text)


@pytest.mark.parametrize(
    "row", re.findall(r"^(\S.*?)  +\S+  +\d+  +\d\.\d\d$", README, re.MULTILINE)
)
def test_the_gradient_checks_in_the_readme_exist(row):
    assert row in {case.name for case in CASES}


@pytest.mark.parametrize("page", [README, CHECKS], ids=["README", "gradient checks"])
def test_the_example_prints_what_the_page_says(page, capsys):
    program, expected = program_and_output(page, "import numpy as np")
    exec(compile(program, "an example", "exec"), {})
    assert len(program.splitlines()) <= 20
    assert comparable(capsys.readouterr().out) == comparable(expected)


def test_the_wrong_norm_is_diagnosed_as_the_page_says(tmp_path, monkeypatch, capsys):
    program, expected = program_and_output(CHECKS, "# my_file.py")
    (tmp_path / "my_file.py").write_text(program, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["gradcheck", "my_file.py:my_norm"]) == 1
    assert comparable(capsys.readouterr().out) == comparable(expected)


def test_the_map_of_the_paper_leads_to_files_that_exist_to_each_layer_and_to_each_lesson():
    package = ROOT / "minitransformer"
    rows = re.findall(r"^\| .* \| (?:.*\.ipynb\)|–) \|$", CODE, re.MULTILINE)  # a dash: no lesson
    places = re.findall(r"`(\S+?/\S*)`", "\n".join(rows))
    layers = {f"layers/{path.name}" for path in (package / "layers").glob("[!_]*.py")}
    lessons = {path.stem for path in (ROOT / "lessons").glob("[0-9][0-9]_*.ipynb")}
    assert [place for place in places if not (package / place).exists()] == []
    assert layers - set(places) == set()
    assert set(re.findall(r"\(\.\./lessons/(\w+)\.ipynb\)", "\n".join(rows))) == lessons
