"""What docs/processes.md says of costs is what was measured, and what the model predicts of it.

The lines that the page has to have:  python tests/benchmarks/test_figures_of_processes.py
"""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import _reductions  # noqa: E402  # where the scripts are
import many_machines  # noqa: E402
import processes  # noqa: E402
from _cost import errors  # noqa: E402

TWO, FOUR, MANY = (
    json.loads((ROOT / f"benchmarks/results/{name}.json").read_text(encoding="utf-8"))
    for name in ("processes-two", "processes", "many_machines")
)
SUMS = {
    "ordered": "in the order of the shards",
    "MPI's": "in MPI's order",
    "NCCL's": "in NCCL's order",
    "either": "either",
}


def measured():
    """The rows of the first table: steps of one, two and four processes."""
    lines = []
    for result in (TWO, FOUR):
        links = _reductions.fitted(result["reductions"])
        for row in result["rows"]:
            alone = row["processes"] == 1
            model = processes.modelled(row, result["rows"][0], links)
            cells = (
                f"{row['processes']} × {row['threads']}",
                result["shards"],
                "" if alone else SUMS[_reductions.order(row)],
                f"{1000 * row['seconds']:.0f} ms",
                "1" if alone else f"{row['as_fast']:.2f}",
                "" if alone else f"{row['waiting']:.1%}".replace("%", " %"),
                "" if alone else f"{row['bytes_sent'] / 1e6:.0f} MB",
                "" if alone else f"{1000 * model:.0f} ms",
            )
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def fits():
    """The rows of the second table: what was fitted in each run, and how far off it is."""
    lines = []
    for run, result in (("-n 2", TWO), ("-n 4", FOUR)):
        rows = result["reductions"]
        for ordered, link in _reductions.fitted(rows).items():
            team = {"processes": 2, "shards": 1, "ordered_sums": ordered}.items()
            off = errors(link, _reductions.points([row for row in rows if team <= row.items()]))
            fitted, between = (max(map(abs, part)) for part in (off[::2], off[1:-1:2]))
            sums = SUMS[_reductions.order(dict(team))]
            lines.append(
                f"| `{run}` | {sums} | {1e6 * link.latency:.0f} µs | "
                f"{link.bandwidth / 1e9:.1f} GB/s | {fitted:.0%} | {between:.0%} | "
                f"{off[-1]:+.0%} |".replace("%", " %")
            )
    return lines


def predicted():
    """The rows of the third table, base and big in each."""
    lines, found = [], many_machines.predictions(MANY)
    for base, big in zip(found[::2], found[1::2], strict=True):
        setting, both = base.setting, (base, big)
        precision = {"float32": ", float32", "tf32": ", TF32", None: ""}[setting.precision]
        saved = [p.step.overlap_saves_at_most() / p.step.seconds for p in both]
        cells = (
            setting.name + precision,
            SUMS[setting.sums],
            " / ".join(_seconds(p.step.reduction) for p in both),
            " / ".join(_seconds(p.step.seconds) for p in both),
            _shares(p.weak for p in both),
            _shares(p.weak_half for p in both),
            _shares(p.weak_twice for p in both),
            _shares(p.strong for p in both),
            _shares(saved),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _seconds(seconds):
    if seconds >= 0.3:
        return f"{seconds:.1f} s"
    return f"{1000 * seconds:.{0 if seconds >= 0.01 else 1}f} ms"


def _shares(values):
    return " / ".join(f"{100 * value:.0f}" for value in values) + " %"


def alone():
    """The rows of the paper's models in one process."""
    return [
        f"| `{name}` | {row['parameters'] / 1e6:.0f} million | {row['gflop']:.0f} GFLOP | "
        f"{row['seconds']:.1f} s | {row['update']:.2f} s |"
        for name, row in MANY["models"].items()
    ]


def assumed():
    return [f"- {line}" for line in many_machines.assumptions()]


@pytest.mark.parametrize("part", [measured, fits, alone, assumed, predicted])
def test_the_page_has_the_figures(part):
    page = (ROOT / "docs/processes.md").read_text(encoding="utf-8").splitlines()
    lines = part()
    start = page.index(lines[0])
    assert page[start : start + len(lines) + 1] == [*lines, ""]


def test_two_processes_of_a_thread_are_as_fast_as_one_of_two():
    rows = [row for result in (TWO, FOUR) for row in result["rows"] if row["processes"] == 2]
    assert min(round(row["as_fast"], 2) for row in rows) >= 0.95
    assert min(row["as_fast"] for row in FOUR["rows"]) > 0.9  # of four, too


def test_a_step_varies_from_round_to_round_by_up_to_14_per_cent():
    rows = [row for result in (TWO, FOUR) for row in result["rows"]]
    off = [turn / row["seconds"] - 1 for row in rows for turn in row["of_rounds"]]
    assert round(max(map(abs, off)), 2) == 0.14


def test_the_model_of_whole_steps_is_right_within_a_tenth():
    for result in (TWO, FOUR):
        links = _reductions.fitted(result["reductions"])
        first, *others = result["rows"]
        for row in others:
            assert processes.modelled(row, first, links) == pytest.approx(row["seconds"], rel=0.1)


if __name__ == "__main__":
    for part in (measured, fits, alone, assumed, predicted):
        print(*part(), sep="\n", end="\n\n")
