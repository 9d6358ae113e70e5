"""The results page, ``benchmarks/results/README.md``, from the JSON files beside it.

    python benchmarks/report.py

Everything on the page comes from the files, so it can be made again by anyone, and a test sees to
it that it says what they say. A file is the result of a benchmark here, which names its ``kind``,
or of a whole training run, which has scores by ``splits``.
"""

import argparse
import importlib
import json
import re
import statistics
from pathlib import Path

import _options
import train_step

RESULTS = Path(__file__).parent / "results"
INTRODUCTION = """# Results

Made from the JSON files in this folder by `python benchmarks/report.py`; what each benchmark
measures is told in [its README](../README.md). A ratio is a speed beside another one's in the same
run, on the same machine: it carries over to other machines better than the speeds do.
"""
BENCHMARKS = {  # kind, which is the name of the script: title
    "gpu_report": "On GPUs of others",
    "train_step": "A training step",
    "decode": "Translating",
    "profile_step": "Where the time of a step goes",
    "scaling": "How the time of a step grows",
    "processes": "A step on several processes",
    "many_machines": "What a step would cost on GPUs and many machines: predictions",
    "recurrent": "A step of a recurrent layer",
    "convolution": "A convolution",
    "pictures": "Networks of pictures",
    "restricted": "Restricted attention",
    "table_1": "Table 1 of the paper, measured",
    "language_model": "A character model",
    "speaking": "A model of others speaks",
    "adapters": "A model of others learns",
    "since_2017": "What came since 2017, one change a row",
    "table_3": "Table 3 of the paper, measured",
    "ladder": "The same translation by five architectures",
    "fashion_mnist": "Fashion-MNIST",
    "picture_claims": "What the papers on pictures claim",
    "norms": "Batch norm in a translator",
    "covariate_shift": "Internal covariate shift",
    "fine_tuning": "What pre-training is worth where labels are few",
    "loss_curve": "The course of training",
    "precision": "What rounding in matrix products does to training",
}
RATIOS = """A ratio is the product of two others: of the best speeds of matrix products on each
side, and of the shares of them that a whole step reaches. They are not independent: where matrix
products are slow, all else costs a smaller share. The limit is the ratio that a step of nothing but
matrix products would have, all at our best speed: with this BLAS there is nothing beyond.
"""
SCORES = {"bleu_cased_13a": "BLEU", "bleu_lowercased": "lowercased", "chrf2": "chrF2"}


def main(arguments=None):
    """Write the page; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=RESULTS, help="where the JSON is")
    folder = parser.parse_args(arguments).folder
    (folder / "README.md").write_text(page(folder), encoding="utf-8")
    return 0


def page(folder):
    """The text of the page about the files in a folder.

    Raises:
        SystemExit: a file is no result.
    """
    files = sorted(folder.glob("*.json"))
    results = {path: json.loads(path.read_text(encoding="utf-8")) for path in files}
    known = {path: kind_of(path, result) for path, result in results.items()}
    sections = [INTRODUCTION]
    of_kind = {kind: [path for path in files if known[path] == kind] for kind in known.values()}
    if "training" in of_kind:
        runs = {path.stem: results[path] for path in of_kind["training"]}
        sections.append(f"## Training runs\n\n{training_runs(runs)}")
    for kind, title in BENCHMARKS.items():
        if kind not in of_kind:
            continue
        of_this = {path: results[path] for path in of_kind[kind]}
        sections.append(f"## {title}\n")
        if kind == "train_step":
            sections.append(ratios(of_this))
        sections += [details(path, result) for path, result in of_this.items()]
    if not files:
        sections.append("There are no results yet.\n")
    return "\n".join(sections)


def kind_of(path, result):
    if result.get("kind") in BENCHMARKS:
        return result["kind"]
    if "splits" in result:
        return "training"
    raise SystemExit(
        f"{path.name} is no result: its kind is {result.get('kind')!r}, and it should be one of "
        f"{', '.join(BENCHMARKS)}, or have scores by splits"
    )


def details(path, result):
    """One result of a benchmark: the command, the versions, and what the script printed."""
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    lines = [
        f"### {path.stem}\n",
        f"`{result['command']}`\n",
        f"[{path.name}]({path.name}), commit {result['commit']}; {versions}\n",
        "```",
        importlib.import_module(result["kind"]).table(result),
        "```\n",
    ]
    plot = path.with_suffix(".png")
    if plot.exists():
        lines.append(f"![{BENCHMARKS[result['kind']]}]({plot.name})\n")
    return "\n".join(lines)


def ratios(results):
    """The training steps in one table."""
    rows = []
    for path, result in results.items():
        ours, theirs, blocks = result["ours"], result["theirs"], result["ratio_of_blocks"]
        rows.append(
            (
                f"[{path.stem}](#{path.stem})",
                result["config"],
                train_step.other_name(result),
                f"**{result['ratio']:.2f}** ({min(blocks):.2f} to {max(blocks):.2f})",
                f"{ours['gemm_peak_gflops'] / theirs['gemm_peak_gflops']:.2f} · "
                f"{ours['gemm_peak_share'] / theirs['gemm_peak_share']:.2f}",
                f"{result['ratio'] / ours['gemm_peak_share']:.2f}",
                f"{ours['tokens_per_second']:,.0f} / {theirs['tokens_per_second']:,.0f}",
                f"{ours['gemm_peak_share']:.0%} / {theirs['gemm_peak_share']:.0%}",
                f"{ours['peak_mb']:,.0f} / {theirs['peak_mb']:,.0f}",
                ours["blas"],
            )
        )
    heads = ("run", "model", "against", "ratio", "of it BLAS · our use of it", "limit")
    more = ("target tokens/s", "share of GEMM peak", "peak memory, MB", "our BLAS")
    table = markdown((*heads, *more), rows)
    return f"{table}\n{RATIOS}"


def training_runs(runs):
    """Scores of trained models by run and split, the means over seeds, and how they were made.

    Args:
        runs: results by name; names that differ in ``seed`` and a number only are one group.
    """
    heads = ["run", "split", "search", *SCORES.values()]
    rows = []
    for name, run in runs.items():
        for split, searches in run["splits"].items():
            for search, scores in searches.items():
                cells = [f"{scores[score]:.1f}" for score in SCORES]
                rows.append([name, split, search, *cells])
    text = [markdown(heads, rows)]

    means = mean_scores(runs)
    if means:
        text.append("Means over seeds, with the standard deviation of a seed:\n")
        text.append(markdown(["runs", "seeds", "split", "search", *SCORES.values()], means))

    made = [
        [
            name,
            run["seed"],
            run["epochs"],
            f"{run['wall_seconds'] / 60:.0f}",
            in_words(run["hardware"]),
            run["commit"][:10],
            f"`{run['command']}`",
        ]
        for name, run in runs.items()
    ]
    text.append(
        markdown(
            ["run", "seed", "epochs", "minutes", "hardware", "commit", "command at that commit"],
            made,
        )
    )
    text.append("sacreBLEU's signatures:\n")
    text += [f"- `{signature}`" for signature in signatures(runs)]
    return "\n".join([*text, ""])


def mean_scores(runs):
    """Rows of means for each group of more than one seed."""
    groups = {}
    for name, run in runs.items():
        for split, searches in run["splits"].items():
            for search, scores in searches.items():
                group = re.sub(r"[-_]?seed[-_]?\d+", "", name), split, search
                groups.setdefault(group, []).append(scores)
    rows = []
    for (name, split, search), members in groups.items():
        if len(members) > 1:
            columns = [[scores[score] for scores in members] for score in SCORES]
            cells = [f"{statistics.mean(c):.2f} ± {statistics.stdev(c):.2f}" for c in columns]
            rows.append([name, len(members), split, search, *cells])
    return rows


def signatures(runs):
    """Each signature of the runs once."""
    found = set()
    for run in runs.values():
        for searches in run["splits"].values():
            for scores in searches.values():
                given = scores.get("signatures") or scores["signature"]
                found.update(given.values() if isinstance(given, dict) else [given])
    return sorted(found)


def in_words(value):
    """A description that may be a text or a dict of facts."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {fact}" for name, fact in value.items())
    return str(value)


def markdown(heads, rows):
    """A table."""
    lines = [heads, ["---"] * len(heads), *rows]
    text = "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)
    return f"{text}\n"


if __name__ == "__main__":
    _options.end(main)
