"""benchmarks/processes.py times every number of processes, and counts the bytes of theory."""

import json
import sys
from pathlib import Path

import pytest
from jobs import MPIEXEC, finished

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "processes.py"


def test_what_is_sent_is_what_theory_says(tmp_path):
    options = "--config", "toy", "--batch-tokens", "500", "--rounds", "1", "--steps", "1"
    sizes = "--sizes", "1000", "40000", "400000"
    command = [MPIEXEC, "-n", "2", sys.executable, SCRIPT, *options, *sizes]
    done = finished([*map(str, command), "--json", str(tmp_path / "x.json")])
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "x.json").read_text())
    assert " mpiexec -n 2 python benchmarks/processes.py --config toy" in result["command"]
    rows = result["rows"]
    assert [(row["processes"], row["ordered_sums"]) for row in rows] == [
        (1, True),
        (2, True),
        (2, False),
    ]
    for row in rows:
        assert row["bytes_sent"] == pytest.approx(row["bytes_in_theory"], abs=8)  # n may be odd
        assert row["seconds"] > row["update"] > 0
        assert f"{row['processes']:9d} {row['threads']:8d}" in done.stdout
    teams = [(1, True), (1, False), (2, True)]
    assert [(row["shards"], row["ordered_sums"], row["bytes"]) for row in result["reductions"]] == [
        (*team, size) for team in teams for size in (1000, 40000, 400000)
    ]
    assert all(row["seconds"] > 0 for row in result["reductions"])


def test_what_is_wrong_with_its_options_is_said_once():
    done = finished([MPIEXEC, "-n", "2", sys.executable, str(SCRIPT), "--sizes", "many"])
    assert done.returncode == 2
    assert done.stderr.count("invalid int value: 'many'") == 1
