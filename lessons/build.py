"""Build the notebooks of the lessons from their sources, and execute them.

    python lessons/build.py                   all whose notebook is not in step with its source
    python lessons/build.py --all             all
    python lessons/build.py 07_layer_norm     some

A source is a Python script in jupytext's percent format. What is built depends on it alone, and on
the exercises and the code of the package that it shows: cells have numbers for ids, and no times,
versions or paths are stored. How long each took is printed, for STYLE.md sets a limit.
"""

import argparse
import ast
import base64
import io
import os
import time
from functools import partial
from pathlib import Path

import jupytext
import nbformat

from minitransformer.course.notebooks import source_of
from minitransformer.course.stops import show

FOLDER = Path(__file__).parent
OWN = FOLDER / "solutions" / "own.py"  # the reader whose notebook it is has written all of it
FOLDED = "hide-input"  # the tag of a cell whose code is folded away


def sources():
    """The scripts of all lessons, in their order."""
    return sorted(FOLDER.glob("[0-9][0-9]_*.py"))


def notebook_from(source):
    """The notebook of a script, not yet executed."""
    cells = jupytext.read(source, fmt="py:percent").cells
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number:02}"
        if FOLDED in cell.metadata.get("tags", []):
            fold(cell)
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


def fold(cell):
    """Hide the code of a cell, and not what it shows. On the site the tag alone does it."""
    cell.metadata.jupyter = {"source_hidden": True}  # JupyterLab and Notebook 7
    cell.metadata.cellView = "form"  # Colab


def in_step(source):
    """Whether the notebook beside a script has its cells, and shows what the package has today."""
    path = source.with_suffix(".ipynb")
    if not path.exists():
        return False
    notebook = nbformat.read(path, as_version=4)
    return _cells(notebook) == _cells(notebook_from(source)) and not _stale(notebook)


def _cells(notebook):
    return [(cell.id, cell.cell_type, cell.source, cell.metadata) for cell in notebook.cells]


def _stale(notebook):
    """The cells that show an exercise, or code of the package, as it is no longer."""
    names, stale = {}, []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        *_, last = body = ast.parse(cell.source).body
        imports = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
        exec(compile(ast.Module(imports, []), "imports", "exec"), names)
        shown = ast.unparse(last).removeprefix("print(").partition("(")[0]
        if shown == "check_exercise":
            fresh = str(eval(ast.unparse(last.value.args[0]), names))  # of a reader who begins
        elif names.get(shown) in (source_of, show):
            anyway = {"show": partial(show, anyway=True)}  # without a reader's file
            try:
                fresh = eval(ast.unparse(last), names | anyway)._repr_markdown_()
            except NameError:  # a function of the lesson, whose cells are compared
                continue
        else:
            continue
        outputs = [output.get("text") or output.data["text/markdown"] for output in cell.outputs]
        if "".join(outputs).rstrip("\n") != fresh.rstrip("\n"):
            stale.append(cell)
    return stale


def build(source):
    """Execute the notebook of a script and write it beside the script."""
    from nbclient import NotebookClient  # not needed to look whether all are in step

    os.environ.pop("MPLBACKEND", None)  # with one of its own, the notebook would show no plots
    os.environ["MINITRANSFORMER_OWN"] = str(OWN)
    notebook = notebook_from(source)
    resources = {"metadata": {"path": str(FOLDER)}}
    NotebookClient(
        notebook, timeout=None, resources=resources, record_timing=False, coalesce_streams=True
    ).execute()
    notebook.metadata.language_info = {"name": "python"}  # without the version of Python
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = _smaller(output.data["image/png"])
    nbformat.write(notebook, source.with_suffix(".ipynb"))


def _smaller(png):
    """A picture, in base64, with a palette of 256 colours: a third of the size, and looks alike."""
    from PIL import Image  # comes with matplotlib

    picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    file = io.BytesIO()
    method = Image.Quantize.MAXCOVERAGE  # keeps the colour of thin lines
    picture.quantize(256, method, dither=Image.Dither.NONE).save(file, "png", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("lessons", nargs="*", metavar="NN_name")
    parser.add_argument("--all", action="store_true", help="also those that are in step")
    options = parser.parse_args()
    chosen = [FOLDER / f"{Path(name).stem}.py" for name in options.lessons]
    missing = [source.stem for source in chosen if source not in sources()]
    if missing:
        parser.error(f"there is no lesson {', '.join(missing)}")
    for source in chosen or [s for s in sources() if options.all or not in_step(s)]:
        print(source.with_suffix(".ipynb").name, end=" ", flush=True)
        begin = time.perf_counter()
        build(source)
        print(f"{time.perf_counter() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
