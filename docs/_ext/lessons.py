"""Brings the lessons into the site: each notebook as a page, and all of them as a table of cards.

Sphinx reads below its own folder only, so they are copied to ``docs/lessons``, which git ignores,
with what a page needs and a notebook does not:

- in place of the cell that installs the package, links to the notebook and to how it is run;
- at the name of a file of the package, a link to its part of the API reference;
- where a link to the explorer leads to what the README says of it, one to its page: to the view
  that the title of the link names;
- ``cards.md``: of each part of the course its lessons, and of each its number and title, what "you
  will" learn, and a picture. The plan, ``lessons/README.md``, has the parts: a heading of the third
  level, and a table below it with a row for each lesson.
"""

import base64
import html
import re
import shutil
from pathlib import Path

import nbformat

SOURCE = Path(__file__).parents[2] / "lessons"
EXPLORER = re.compile(r'\[([^]]+)\]\(\.\./README\.md#look-inside "(#[^"]+)"\)')
FILE = re.compile(r"`(minitransformer/[\w/]+\.py)`")
PART = re.compile(r"^### (.+)$|^\| \[\d\d\]\((\w+)\.ipynb\)", re.MULTILINE)
BESIDE = "README.md", "glossary.md", "model.svg", "one_file.py"  # pages, and what they show


def copy_lessons(app, config):
    folder = Path(app.srcdir) / "lessons"
    folder.mkdir(exist_ok=True)
    notebooks = sorted(SOURCE.glob("[0-9][0-9]_*.ipynb"))
    kept = {notebook.stem for notebook in notebooks}
    for page in (*folder.glob("*.ipynb"), *folder.glob("*.png")):
        if page.stem not in kept:
            page.unlink()
    for name in BESIDE:
        write_if_changed(folder / name, (SOURCE / name).read_bytes())
    for below in ("exercises", "solutions"):  # to be downloaded
        shutil.rmtree(folder / below, ignore_errors=True)
        shutil.copytree(SOURCE / below, folder / below)
    cards = {}
    for path in notebooks:
        notebook = nbformat.read(path, as_version=4)
        cards[path.stem] = card_of(path.stem, notebook)
        write_if_changed(folder / f"{path.stem}.png", first_picture_of(path.stem, notebook))
        write_if_changed(folder / path.name, nbformat.writes(page_of(path, notebook)).encode())
    parts = parts_of((SOURCE / "README.md").read_text(encoding="utf-8"), cards)
    pages = [cards_of(title, {name: cards[name] for name in names}) for title, names in parts]
    write_if_changed(folder / "cards.md", "\n".join(pages).encode())


def parts_of(plan, lessons):
    """The parts of the plan in their order: the title of each, and the names of its lessons.

    Raises:
        ValueError: a lesson stands in no part, or in two, or what stands in one is none.
    """
    parts = [("", [])]  # what comes before the first heading
    for title, name in PART.findall(plan):
        if title:
            parts.append((title, []))
        else:
            parts[-1][1].append(name)
    listed = sorted(name for _, names in parts[1:] for name in names)
    if listed != sorted(lessons):
        wrong = ", ".join(sorted({*listed} ^ {*lessons})) or "one has two"
        raise ValueError(f"lessons/README.md should have a row in a part for each lesson: {wrong}")
    return parts[1:]


def cards_of(title, cards):
    """Markdown: a part with the cards of its lessons, and its place in the table of contents."""
    listed = "\n".join(f"lessons/{name}" for name in cards)
    return (
        f"### {title}\n\n:::::{{container}} cards\n{''.join(cards.values())}:::::\n\n"
        f"```{{toctree}}\n:caption: {title}\n:hidden:\n\n{listed}\n```\n"
    )


def write_if_changed(path, content):
    """Write unless it is there: Sphinx reads again what is newer than before."""
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)


def page_of(path, notebook):
    """The notebook as it stands in the site."""
    install = next(cell for cell in notebook.cells if cell.cell_type == "code")
    if '"pip", "install"' not in install.source:
        raise ValueError(f"{path.name}: the first cell of code should install the package")
    place = notebook.cells.index(install)
    notebook.cells[place] = nbformat.v4.new_markdown_cell(
        f"{{download}}`Download this notebook <../../lessons/{path.name}>`. To run it, "
        "[get the project](#run-the-lessons) first.",
        id=install.id,
    )
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = EXPLORER.sub(linked_view, FILE.sub(linked_module, cell.source))
    return notebook


def linked_module(match):
    """`minitransformer/layers/masks.py` as a link to the module's place in the API reference."""
    path = match[1]
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return f"{{py:mod}}`{path} <{module}>`"


def linked_view(match):
    """A link to a view of the explorer, which is no page of Sphinx."""
    text, fragment = match.groups()
    return f'<a href="../explorer.html{html.escape(fragment)}">{text}</a>'


def card_of(name, notebook):
    """Markdown: picture, title and aim of a lesson, the picture and the title leading to it."""
    head = re.match(
        r"# ([^\n]+)\n\n\*\*You will\*\* (.+?)\n\n", notebook.cells[0].source, re.DOTALL
    )
    if head is None:
        raise ValueError(f"{name} does not begin with '# NN · Title' and then '**You will** ...'")
    title, aim = head[1], head[2].replace("\n", " ")
    return (
        f":::{{container}} card\n[![{title}](lessons/{name}.png)](lessons/{name}.ipynb)\n\n"
        f"**[{title}](lessons/{name}.ipynb)**\n\nYou will {aim}\n:::\n"
    )


def first_picture_of(name, notebook):
    """The first picture that the notebook draws, a PNG."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                return base64.b64decode(output.data["image/png"])
    raise ValueError(f"{name} was not executed, or draws nothing: python lessons/build.py {name}")


def link_copies(app, name, content):
    """Lead links between the lessons and ``docs``, which lie side by side on GitHub, as here."""
    content[0] = content[0].replace("](../lessons/", "](lessons/").replace("](../docs/", "](../")


def setup(app):
    app.connect("config-inited", copy_lessons)
    app.connect("source-read", link_copies)
    return {"parallel_read_safe": True}
