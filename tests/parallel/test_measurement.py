"""benchmarks/processes.py times every number of processes, and counts the bytes of theory."""

import json
import sys
from pathlib import Path

import pytest
from jobs import MPIEXEC, finished

SIZES = 1000, 40000, 400000
ROOT = Path(__file__).parents[2]
OF_TINY_WORKLOAD = f"""
import sys
sys.path[:0] = [{str(ROOT / "benchmarks")!r}, {str(ROOT / "tests/benchmarks")!r}]
import _reductions
import processes
from tiny_workload import tiny_workload

_reductions.TIMES = 2
processes.make_workload = lambda *_, **__: tiny_workload()
sys.exit(processes.all_processes().run(processes.main))
"""


def test_what_is_sent_is_what_theory_says(tmp_path):
    options = "--config", "toy", "--rounds", "1", "--steps", "1", "--sizes", *map(str, SIZES)
    command = [MPIEXEC, "-n", "2", sys.executable, "-c", OF_TINY_WORKLOAD, *options]
    done = finished([*command, "--json", str(tmp_path / "x.json")])
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
        (*team, size) for team in teams for size in SIZES
    ]
    assert all(row["seconds"] > 0 for row in result["reductions"])


def test_what_is_wrong_with_its_options_is_said_once():
    script = ROOT / "benchmarks/processes.py"
    done = finished([MPIEXEC, "-n", "2", sys.executable, str(script), "--sizes", "many"])
    assert done.returncode == 2
    assert done.stderr.count("'many' is no whole number, 1 or more") == 1
