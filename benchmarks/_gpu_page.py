"""How the report of a GPU is shown, from its JSON alone: a line for each part, and all of it."""

import textwrap

import decode
import train_step

from minitransformer.evaluation.scores import Scores
from minitransformer.evaluation.scores import table as scores_table

WIDTH = 100  # of the line of a part
LAST_LINES = 30  # of what a part printed
QUICK = "This was a rehearsal with little work in each part: its figures mean nothing."


def page(report):
    """The report as Markdown."""
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    sections = [
        f"# minitransformer on {report['gpu']['name']}\n",
        f"`{report['command']}`, {report['date']}, commit {report['commit']}; {versions}\n",
        _fenced(table(report)),
    ]
    for part in report["parts"]:
        sections += [
            f"## {part['name']}: {part['title']}\n",
            f"`{part['command']}`\n",
            f"{part['status'].capitalize()} after {part['seconds']:.0f} seconds of "
            f"{part['limit_seconds']:.0f}.\n",
            _fenced(in_full(part)),
        ]
    return "\n".join(sections)


def table(report):
    """What there was to compute with, and a line for each part, as text."""
    without = report["without_torch"]
    lines = [
        *([QUICK, ""] if report["quick"] else []),
        _device(report["gpu"]),
        f"{report['cpu']}, {report['cores']} cores",
        *([f"no ratios to PyTorch: {without}"] if without else []),
        "",
    ]
    for part in report["parts"]:
        line = textwrap.shorten(in_a_line(part), WIDTH, placeholder=" …")
        lines.append(f"{part['name']:<16}{part['seconds']:>5.0f} s  {line}")
    return "\n".join(lines)


def in_a_line(part):
    """What came of a part."""
    if "problem" in part:
        return f"{part['status'].upper()}: {part['problem']}"
    return LINES[part["kind"]](part)


def in_full(part):
    """All there is to see of a part: its result, or how what it printed ends."""
    shown = TEXTS.get(part["kind"])
    if "problem" in part or shown is None:
        return "\n".join(part["output"].splitlines()[-LAST_LINES:])
    return shown(part["result"])


def require_shown(kind, result):
    """Raise whatever error there is where a result of this kind is not what it should be."""
    part = {"kind": kind, "result": result}
    in_a_line(part)
    in_full(part)


def _device(gpu):
    if not gpu["count"]:
        return gpu["name"]
    cuda, of_driver = (
        f"{v // 1000}.{v % 1000 // 10}" for v in (gpu["cuda"], gpu["cuda_of_driver"])
    )
    return (
        f"{gpu['name']}, {gpu['memory_mb'] / 1000:.0f} GB, compute capability "
        f"{gpu['compute_capability']}, {gpu['count']} in the machine; driver "
        f"{gpu['driver'] or 'unknown'} for CUDA {of_driver}, CUDA {cuda}, CuPy {gpu['cupy']}"
    )


def _printed(part):
    said = [line for line in part["output"].splitlines() if line.strip()]
    return said[-1].strip("= ") if said else "it said nothing"


def _step(part):
    result, ours = part["result"], part["result"]["ours"]
    line = f"{ours['tokens_per_second']:,.0f} target tokens/s"
    if "device_peak_mb" in ours:
        line += f", {ours['device_peak_mb']:,.0f} MB of the GPU"
    return f"{line}; {result['ratio']:.2f} times as fast as {train_step.other_name(result)}"


def _decoding(part):
    said = []
    for search, found in part["result"]["searches"].items():
        line = f"{search} {found['sentences_per_second']['ours']:,.0f} sentences/s"
        if "cache" in found["ratio"]:
            line += f" ({found['ratio']['cache']:.2f} times PyTorch's)"
        said.append(line)
    return ", ".join(said)


def _training(part):
    result = part["result"]
    epochs = len(result["validations"])
    line = f"{epochs} epoch{'s' * (epochs != 1)}, {result['steps']} steps"
    if epochs:
        line += f", validation BLEU {max(_bleus(result)):.1f}"
    return line + ("" if result["finished"] else ", cut off when its time was over")


def _bleus(result):
    return [validation["bleu"] for validation in result["validations"]]


def _epochs(result):
    lines = ["epoch  BLEU  seconds"]
    for validation in result["validations"]:
        epoch, bleu, seconds = (validation[name] for name in ("epoch", "bleu", "seconds"))
        lines.append(f"{epoch:>5}{bleu:>6.1f}{seconds:>9.0f}")
    return "\n".join(lines)


def _score(part):
    result = part["result"]
    bleu = result["scores"]["chosen"]["bleu_cased_13a"]
    search = "greedy" if result["beam_size"] == 1 else f"beam {result['beam_size']}"
    return f"BLEU {bleu:.1f} on {result['corpus']}, {result['split']}, {search}"


def _scores(result):
    rows = {result["parameters"]: Scores(**result["scores"]["chosen"])}
    return scores_table(rows)


LINES = {
    "output": _printed,
    "train_step": _step,
    "training": _training,
    "evaluate": _score,
    "decode": _decoding,
}
TEXTS = {
    "train_step": train_step.table,
    "training": _epochs,
    "evaluate": _scores,
    "decode": decode.table,
}


def _fenced(text):
    return f"````\n{text}\n````\n"  # four, as a text may hold three
