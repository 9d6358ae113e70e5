"""Build the notebooks of the lessons from their sources, and execute them.

    python lessons/build.py                   all whose notebook is not in step with its source
    python lessons/build.py --all             all
    python lessons/build.py 07_layer_norm     some

A source is a Python script in jupytext's percent format. What is built depends on it alone: cells
have numbers for ids, and no times, versions or paths are stored.
"""

import argparse
import base64
import io
import os
from pathlib import Path

import jupytext
import nbformat

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
    """Whether the notebook beside a script has the script's cells, whatever their outputs."""
    path = source.with_suffix(".ipynb")
    return path.exists() and _cells(nbformat.read(path, as_version=4)) == _cells(
        notebook_from(source)
    )


def _cells(notebook):
    return [(cell.id, cell.cell_type, cell.source, cell.metadata) for cell in notebook.cells]


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
        print(source.with_suffix(".ipynb").name, flush=True)
        build(source)


if __name__ == "__main__":
    main()
