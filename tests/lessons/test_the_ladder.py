"""What lesson 21 and the guide to training say of five architectures is what was measured."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = json.loads((ROOT / "benchmarks/results/ladder.json").read_text(encoding="utf-8"))["rows"]


@pytest.mark.parametrize("page", ["docs/training.md", "lessons/21_why_self_attention.py"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["recipe"])
def test_the_table_says_what_was_measured(row, page):
    greedy, beam = row["bleu"].values()
    cells = [
        row["name"],
        f"`{row['recipe']}`",
        f"{row['parameters'] / 1e6:.1f} million",
        f"{greedy:.1f}",
        f"{beam:.1f}",
        f"{row['step_seconds']:.2f} s",
        f"{row['decode_seconds']['greedy']:.1f} s",
    ]
    assert f"| {' | '.join(cells)} |" in (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["recipe"])
def test_the_scores_by_length_are_those_measured(row):
    scores = [f"{part['bleu_cased_13a']:.1f}" for part in row["by_source_length"]["greedy"]]
    text = (ROOT / "lessons/21_why_self_attention.py").read_text(encoding="utf-8")
    assert f"| {row['name']} | {' | '.join(scores)} |" in text
