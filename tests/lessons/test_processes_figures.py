"""What lesson 24 says of processes is what was measured.

The lines that the lesson has to have:  python tests/lessons/test_processes_figures.py
"""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULT = json.loads((ROOT / "benchmarks/results/processes.json").read_text(encoding="utf-8"))


def lines_of(result):
    """Those of the lesson: sizes, and a line for each number of processes and order of sums."""
    yield f"PARAMETERS, SHARDS = {result['parameters']:_}, {result['shards']}"
    for row in result["rows"]:
        order = "" if row["processes"] == 1 else "ours" if row["ordered_sums"] else "MPI's"
        yield (
            f'    ({row["processes"]}, {row["threads"]}, "{order}", {row["seconds"]:.3f}, '
            f"{row['as_fast']:.2f}, {round(row['bytes_sent']):_}),"
        )


def test_the_figures_of_the_lesson_are_those_measured():
    lines = (ROOT / "lessons/24_many_machines.py").read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("PARAMETERS"))
    end = lines.index(")", start)
    recorded = [lines[start], *lines[start + 2 : end]]  # without the line that names the columns
    assert recorded == list(lines_of(RESULT))


def test_they_are_of_the_model_that_the_lesson_names():
    assert RESULT["model"] == "tiny"
    assert RESULT["cores"] == 2


if __name__ == "__main__":
    print("\n".join(lines_of(RESULT)))
