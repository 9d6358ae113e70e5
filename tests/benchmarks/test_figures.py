"""What the pages say of speed, scores and costs is what was measured, a row of ``PAGES`` each."""

import json
import re
from pathlib import Path
from statistics import mean

import _reductions
import covariate_shift
import many_machines
import norms
import picture_claims
import processes
import pytest
import since_2017
import table_3
from _cost import errors
from report import RESULTS, page

ROOT = Path(__file__).parents[2]
TWO, FOUR, MANY, LADDER, TUNING, SINCE_2017, SHIFTS, NORMS, TABLE_3, *ADAPTERS = (
    json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    for name in (
        "processes-two",
        "processes",
        "many_machines",
        "ladder",
        "fine_tuning",
        "since_2017",
        "covariate_shift",
        "norms",
        "table_3",
        "adapters-smollm2",
        "adapters-stories260k",
    )
)
CLAIMS = [
    json.loads(file.read_text(encoding="utf-8"))
    for file in sorted(RESULTS.glob("picture-claims-*.json"))
]
TUNED = sorted(TUNING["rows"], key=lambda row: (row["labels"] == "case", row["share"]))
SUMS = {
    "ordered": "in the order of the shards",
    "MPI's": "in MPI's order",
    "NCCL's": "in NCCL's order",
    "either": "either",
}


def table(rows):
    return [f"| {' | '.join(map(str, cells))} |" for cells in rows]


def steps():
    """Of one, two and four processes."""
    for result in (TWO, FOUR):
        links = _reductions.fitted(result["reductions"])
        for row in result["rows"]:
            alone = row["processes"] == 1
            model = processes.modelled(row, result["rows"][0], links)
            yield (
                f"{row['processes']} × {row['threads']}",
                result["shards"],
                "" if alone else SUMS[_reductions.order(row)],
                f"{1000 * row['seconds']:.0f} ms",
                "1" if alone else f"{row['as_fast']:.2f}",
                "" if alone else f"{100 * row['waiting']:.1f} %",
                "" if alone else f"{row['bytes_sent'] / 1e6:.0f} MB",
                "" if alone else f"{1000 * model:.0f} ms",
            )


def fits():
    """What was fitted in each run, and how far off it is."""
    for run, result in (("`-n 2`", TWO), ("`-n 4`", FOUR)):
        rows = result["reductions"]
        for ordered, link in _reductions.fitted(rows).items():
            team = {"processes": 2, "shards": 1, "ordered_sums": ordered}.items()
            off = errors(link, _reductions.points([row for row in rows if team <= row.items()]))
            fitted, between = (100 * max(map(abs, part)) for part in (off[::2], off[1:-1:2]))
            speed = f"{1e6 * link.latency:.0f} µs", f"{link.bandwidth / 1e9:.1f} GB/s"
            off = f"{fitted:.0f} %", f"{between:.0f} %", f"{100 * off[-1]:+.0f} %"
            yield run, SUMS[_reductions.order(dict(team))], *speed, *off


def alone():
    """The paper's models in one process."""
    for name, row in MANY["models"].items():
        size = f"{row['parameters'] / 1e6:.0f} million", f"{row['gflop']:.0f} GFLOP"
        yield f"`{name}`", *size, f"{row['seconds']:.1f} s", f"{row['update']:.2f} s"


def predicted():
    """The base and the big model in each row."""
    found = many_machines.predictions(MANY)
    for both in zip(found[::2], found[1::2], strict=True):
        setting = both[0].setting
        precision = {"float32": ", float32", "tf32": ", TF32", None: ""}[setting.precision]
        yield (
            setting.name + precision,
            SUMS[setting.sums],
            " / ".join(_seconds(p.step.reduction) for p in both),
            " / ".join(_seconds(p.step.seconds) for p in both),
            _shares(p.weak for p in both),
            _shares(p.weak_half for p in both),
            _shares(p.weak_twice for p in both),
            _shares(p.strong for p in both),
            _shares(p.step.overlap_saves_at_most() / p.step.seconds for p in both),
        )


def _seconds(seconds):
    if seconds >= 0.3:
        return f"{seconds:.1f} s"
    return f"{1000 * seconds:.{0 if seconds >= 0.01 else 1}f} ms"


def _shares(values):
    return " / ".join(f"{100 * value:.0f}" for value in values) + " %"


def architectures():
    for row in LADDER["rows"]:
        name = row["name"], f"`{row['recipe']}`", f"{row['parameters'] / 1e6:.1f} million"
        scores = (f"{bleu:.1f}" for bleu in row["bleu"].values())
        greedy = row["decode_seconds"]["greedy"]
        yield *name, *scores, f"{row['step_seconds']:.2f} s", f"{greedy:.1f} s"


def by_length():
    for row in LADDER["rows"]:
        parts = row["by_source_length"]["greedy"]
        yield row["name"], *(f"{part['bleu_cased_13a']:.1f}" for part in parts)


def gains():
    """Means of what begins anew and of what was pre-trained."""
    for row in TUNED:
        means = (mean(run["accuracy"] for run in row[side]) for side in ("scratch", "pretrained"))
        if row["labels"] == "case":
            share = {0.01: "a hundredth", 0.1: "a tenth", 1.0: "all"}[row["share"]]
            yield share, *(f"{100 * accuracy:.1f} %" for accuracy in means)


def seeds():
    """The entries of RECORDED in the lesson: three of each side, in per cent."""
    for row in TUNED:
        models = ([run["accuracy"] for run in row[side]] for side in ("scratch", "pretrained"))
        sides = (
            "(" + ", ".join(f"{100 * share:.2f}" for share in shares) + ")"
            for shares in (row["without_a_model"], *models)
        )
        yield f'    ("{row["labels"]}", {row["share"]}): ({", ".join(sides)}),'


def since(part, *rows):
    """Lines of a part of what ``since_2017.py`` prints: all, or the header and these rows."""
    lines = since_2017.table(SINCE_2017).split("\n\n")[part].splitlines()
    return [
        line
        for i, line in enumerate(lines)
        if i < 2 or not rows or line.split("|")[1].strip() in rows
    ]


POSITIONS = "sinusoids", "rotary positions", "ALiBi", "no positions", "as SmolLM2 has it"


def sums():
    """The entries of RECORDED in the lesson: each number of processes and order of sums."""
    for row in FOUR["rows"]:
        order = "" if row["processes"] == 1 else "ours" if row["ordered_sums"] else "MPI's"
        size = f"{row['as_fast']:.2f}, {round(row['bytes_sent']):_}"
        start = f'{row["processes"]}, {row["threads"]}, "{order}"'
        yield f"    ({start}, {row['seconds']:.3f}, {size}),"


PROCESSES, LESSON = "docs/processes.md", "lessons/21_why_self_attention.py"
BLOCKS = "lessons/27_since_2017.py"


def learned():
    """What adapters learn, beside training all of a model."""
    for row in (row for result in ADAPTERS for row in result["rows"]):
        yield (
            f"{row['run']}, {row['trained']}",
            f"`{row['fields']}`",
            f"{row['parameters']:,}",
            f"{row['before']:.1f}",
            f"{row['after']:.1f}",
            f"{row['seconds'] / 60:.1f}",
            f"{row['peak_bytes'] / 1e9:.1f} GB",
            f"{row['stored_bytes'] / 1e6:.1f} MB",
        )


PAGES = [  # the page, and lines that it has, of which none stands before or behind them
    (PROCESSES, table(steps())),
    (PROCESSES, table(fits())),
    (PROCESSES, table(alone())),
    (PROCESSES, [f"- {line}" for line in many_machines.assumptions()]),
    (PROCESSES, table(predicted())),
    ("docs/training.md", table(architectures())),
    (LESSON, [f"# {line}" for line in table(architectures())]),
    (LESSON, [f"# {line}" for line in table(by_length())]),
    ("docs/language_models.md", table(gains())),
    ("docs/language_models.md", since(0)),
    ("docs/language_models.md", since(1, *POSITIONS)),
    ("docs/language_models.md", since(2)),
    ("docs/language_models.md", table(learned())),
    ("docs/picture_claims.md", covariate_shift.table(SHIFTS).splitlines()),
    ("docs/picture_claims.md", norms.table(NORMS).splitlines()),
    *[("docs/picture_claims.md", picture_claims.table(claim).splitlines()) for claim in CLAIMS],
    *[("docs/table_3.md", part.splitlines()) for part in table_3.table(TABLE_3).split("\n\n")],
    (BLOCKS, [f"# {line}" for line in since(0)]),
    ("lessons/23_an_encoder.py", list(seeds())),
    ("lessons/24_many_machines.py", list(sums())),
]


@pytest.mark.parametrize(("path", "lines"), PAGES)
def test_a_page_says_what_was_measured_and_nothing_else(path, lines):
    said = (ROOT / path).read_text(encoding="utf-8").splitlines()
    beginning = re.match(r"\W+", lines[0])[0]
    starts = [i for i in range(len(said)) if said[i : i + len(lines)] == lines]
    assert len(starts) == 1, f"{path} should say, once:\n" + "\n".join(lines)
    start, end = starts[0], starts[0] + len(lines)
    assert not any(said[i].startswith(beginning) for i in (start - 1, end))


def test_the_results_page_says_what_the_json_files_say():
    said = (RESULTS / "README.md").read_text(encoding="utf-8")
    assert said == page(RESULTS), "run python benchmarks/report.py"


def test_a_lesson_names_the_sizes_of_what_was_measured():
    lesson = (ROOT / "lessons/24_many_machines.py").read_text(encoding="utf-8")
    assert f"\nPARAMETERS, SHARDS = {FOUR['parameters']:_}, {FOUR['shards']}\n" in lesson
    assert (FOUR["model"], FOUR["cores"]) == ("tiny", 2)
    lesson = (ROOT / "lessons/23_an_encoder.py").read_text(encoding="utf-8")
    assert "With 1 % there are 20 epochs, with 10 % five, with all labels one." in lesson
    epochs = {(row["share"], row["epochs"]) for row in TUNED}
    assert epochs == {(0.01, 20), (0.1, 5), (1.0, 1)}


# What docs/processes.md says in words


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
