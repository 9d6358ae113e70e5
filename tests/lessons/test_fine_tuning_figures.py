"""What lesson 23 and the guide to language models say of fine-tuning is what was measured.

The lines that the lesson has to have:  python tests/lessons/test_fine_tuning_figures.py
"""

import json
from pathlib import Path
from statistics import mean

import pytest

ROOT = Path(__file__).parents[2]
RESULT = json.loads((ROOT / "benchmarks/results/fine_tuning.json").read_text(encoding="utf-8"))
ROWS = sorted(RESULT["rows"], key=lambda row: (row["labels"] == "case", row["share"]))


def line_of(row):
    """The entry of RECORDED in the lesson: three seeds of each side, in per cent."""
    of_model = ([scores["accuracy"] for scores in row[side]] for side in ("scratch", "pretrained"))
    sides = (
        "(" + ", ".join(f"{100 * share:.2f}" for share in shares) + ")"
        for shares in (row["without_a_model"], *of_model)
    )
    return f'    ("{row["labels"]}", {row["share"]}): ({", ".join(sides)}),'


def test_the_figures_of_the_lesson_are_those_measured():
    text = (ROOT / "lessons/23_an_encoder.py").read_text(encoding="utf-8")
    entries = [line for line in text.splitlines() if line.startswith('    ("')]
    assert [line for line in entries if line.count("(") == 5] == list(map(line_of, ROWS))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['labels']}-{row['share']}")
def test_the_lesson_names_the_epochs_of_each_share(row):
    text = (ROOT / "lessons/23_an_encoder.py").read_text(encoding="utf-8")
    assert "With 1 % there are 20 epochs, with 10 % five, with all labels one." in text
    assert row["epochs"] == {0.01: 20, 0.1: 5, 1.0: 1}[row["share"]]


@pytest.mark.parametrize("row", [row for row in ROWS if row["labels"] == "case"])
def test_the_table_of_the_guide_has_the_means(row):
    means = (mean(run["accuracy"] for run in row[side]) for side in ("scratch", "pretrained"))
    scratch, pretrained = (f"{100 * share:.1f} %" for share in means)
    guide = (ROOT / "docs/language_models.md").read_text(encoding="utf-8")
    share = {0.01: "a hundredth", 0.1: "a tenth", 1.0: "all"}[row["share"]]
    assert f"| {share} | {scratch} | {pretrained} |" in guide


if __name__ == "__main__":
    print("\n".join(map(line_of, ROWS)))
