"""What is in the files of a run, and changes to them as somebody else may make them."""

import json

from minitransformer.runs.checkpoint.file import load_checkpoint, save_checkpoint


def contents(folder):
    """Every file below ``folder``, by its path there, and what is in it."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {file.relative_to(folder): file.read_bytes() for file in files}


def is_png(path):
    return path.read_bytes().startswith(b"\x89PNG\r\n")


def edit_config(folder, change):
    """Let ``change`` do something to the sections of config.json."""
    path = folder / "config.json"
    sections = json.loads(path.read_text(encoding="utf-8"))
    change(sections)
    path.write_text(json.dumps(sections), encoding="utf-8")


def edit_entry(folder, number, change):
    """Let ``change`` do something to an entry of the log, counted from 0."""
    path = folder / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    entry = json.loads(lines[number])
    change(entry)
    lines[number] = json.dumps(entry)
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def edit_states(paths, change):
    """Let ``change`` do something to the state of each checkpoint, whose arrays stay."""
    for path in paths:
        arrays, state = load_checkpoint(path)
        change(state)
        save_checkpoint(path, arrays, state)
