"""Writes the API reference, ``api/``: a page for each room of the package, and a list of them all.

A page has the modules of its room as they stand in their folder, and names the lessons whose row
*In the package* mentions one of them.
"""

import importlib
import pkgutil
import re
from pathlib import Path

HERE = Path(__file__).parents[1]
# In the order in which one would read them.
ROOMS = (
    *("layers", "loss", "models", "optim", "training", "tasks", "data", "decoding", "inference"),
    *("evaluation", "runs", "parallel", "core", "accelerate", "gradcheck", "cases", "course"),
    *("explorer", "commands"),
)
REST = """
The rest is in its rooms. ``layers.linear`` below is ``minitransformer.layers.linear``, one file and
one idea. A layer is a pair of functions, the backward beside its forward, and a thin module that
owns the parameters.
"""
# What checks an exercise gives the answer away.
PRIVATE = re.compile(r"\._|\.__main__|exercises\.(ex\d\d|own)\b")


def write_reference(app, config):
    folder = HERE / "api"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.rst"):
        old.unlink()
    for room in ROOMS:
        (folder / f"{room}.rst").write_text(page_of(room), encoding="utf-8")
    (folder / "index.rst").write_text(index(), encoding="utf-8")


def modules_of(room):
    """The names of a room's public modules, itself first: ``["minitransformer.loss", ...]``."""
    package = importlib.import_module(f"minitransformer.{room}")
    inside = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [package.__name__, *(m.name for m in inside if not PRIVATE.search(m.name))]


def page_of(room):
    """The page of a room, in reStructuredText."""
    first, *others = map(short, modules_of(room))
    lines = [*heading(first, "="), documented(first)]
    if found := lessons_on(room):
        lines += [f"Lessons: {', '.join(f':doc:`/lessons/{name}`' for name in found)}.", ""]
    for name in others:
        lines += [*heading(name, "-"), documented(name)]
    return "\n".join(lines)


def lessons_on(room):
    """The names of the lessons whose row *In the package* mentions the room, as
    ``minitransformer/layers/relu.py`` or ``layers/relu.py``."""
    found = []
    for path in sorted((HERE.parent / "lessons").glob("[0-9][0-9]_*.py")):
        row = re.search(r"^# \| In the package \|.*$", path.read_text(encoding="utf-8"), re.M)
        if row and re.search(rf"[`/]{room}/", row[0]):
            found.append(path.stem)
    return found


def index():
    """The first page: what the package is, and each module with its first sentence."""
    lines = [*heading("API reference", "="), ".. automodule:: minitransformer", "", REST, ""]
    lines += [".. toctree::", "   :hidden:", "", *(f"   {room}" for room in ROOMS), ""]
    for room in ROOMS:
        lines += heading(room, "-")
        for module in modules_of(room):
            lines += [f":py:mod:`{short(module)} <{module}>`", f"   {summary(module)}"]
        lines.append("")
    return "\n".join(lines)


def heading(title, mark):
    return [title, mark * len(title), ""]


def documented(name):
    return f".. automodule:: minitransformer.{name}\n"


def short(module):
    return module.removeprefix("minitransformer.")


def summary(module):
    """The first paragraph of a module's docstring, in one line."""
    return " ".join(importlib.import_module(module).__doc__.partition("\n\n")[0].split())


def setup(app):
    app.connect("config-inited", write_reference)
    return {"parallel_read_safe": True}
