"""What the site is made of. ``make site`` builds it, and fails where a reference leads nowhere."""

import pkgutil
import re
from collections import Counter
from pathlib import Path

import nbformat
import pytest
from elsewhere import module_at

import minitransformer
import minitransformer.course.exercises
from minitransformer.accelerate.cpu import layer_norm as cpu_layer_norm
from minitransformer.layers.layer_norm import layer_norm

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "lessons").glob("[0-9]*.ipynb"))
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


docstrings, lessons, reference = (
    module_at(ROOT / f"docs/_ext/{name}.py") for name in ("docstrings", "lessons", "reference")
)


def public_modules():
    """The names of all modules, except what checks an exercise: it gives the answer away."""
    names = [m.name for m in pkgutil.walk_packages(minitransformer.__path__, "minitransformer.")]
    private = re.compile(r"\._|__main__|exercises\.(ex\d\d|own)\b")
    return [name for name in names if not private.search(name)]


def test_every_public_module_is_in_the_reference_once():
    documented = [name for room in reference.ROOMS for name in reference.modules_of(room)]
    assert Counter(documented) == Counter(set(public_modules()) - {"minitransformer.version"})


def test_every_public_module_says_in_a_sentence_what_it_is():
    assert all(reference.summary(name)[-1] in ".?" for name in public_modules())


def test_a_room_names_the_lessons_whose_row_mentions_its_files():
    assert "12_learning" in reference.lessons_on("optim")
    assert "08_attention" not in reference.lessons_on("optim")


@each_notebook
def test_a_lesson_has_a_card_with_its_number_its_aim_and_a_picture(path):
    notebook = nbformat.read(path, as_version=4)
    card = lessons.card_of(path.stem, notebook)
    assert card.count(f"[{path.stem[:2]} · ") == 2  # the title, and what stands for the picture
    assert "\n\nYou will " in card
    assert card.count("](") == 3  # of the picture, and to the lesson: others would lead elsewhere
    assert lessons.first_picture_of(path.stem, notebook).startswith(b"\x89PNG")


PARTS = """### Ground

| [00](00_a.ipynb) | a |

### More

| [02](02_c.ipynb) | c |
| [01](01_b.ipynb) | b |
"""


def test_the_parts_of_the_course_are_those_of_the_plan_in_its_order():
    parts = [("Ground", ["00_a"]), ("More", ["02_c", "01_b"])]
    assert lessons.parts_of(PARTS, ["00_a", "01_b", "02_c"]) == parts
    plan = (ROOT / "lessons/README.md").read_text(encoding="utf-8")
    assert len(lessons.parts_of(plan, [path.stem for path in NOTEBOOKS])) == 10


@pytest.mark.parametrize(("plan", "wrong"), [
    (PARTS.replace("| [01](01_b.ipynb) | b |", ""), "01_b"),
    (PARTS.removeprefix("### Ground"), "00_a"),
    (PARTS + "| [03](03_d.ipynb) | d |", "03_d"),
    (PARTS + "| [01](01_b.ipynb) | b |", "one has two"),
], ids=["in none", "above all", "no lesson", "in two"])  # fmt: skip
def test_a_lesson_that_does_not_stand_in_one_part_is_named(plan, wrong):
    with pytest.raises(ValueError, match=f"for each lesson: {wrong}$"):
        lessons.parts_of(plan, ["00_a", "01_b", "02_c"])


def test_a_part_has_its_cards_and_its_place_in_the_table_of_contents():
    page = lessons.cards_of("Ground", {"00_a": "card a\n", "01_b": "card b\n"})
    assert page.index("### Ground") < page.index("card a") < page.index(":caption: Ground")
    assert page.endswith("lessons/00_a\nlessons/01_b\n```\n")


@each_notebook
def test_the_page_of_a_lesson_differs_in_the_first_cell_of_code_and_in_links(path):
    notebook = nbformat.read(path, as_version=4)
    page = lessons.page_of(path, nbformat.read(path, as_version=4))
    changed = [a.cell_type for a, b in zip(notebook.cells, page.cells, strict=True) if a != b]
    assert changed.count("code") == 1
    assert all(cell.source.count("pip") == 0 for cell in page.cells[:2])
    assert path.name in page.cells[1].source


def test_the_name_of_a_file_leads_to_its_module():
    row = (
        "| In the package | `minitransformer/layers/relu.py`, `minitransformer/data/__init__.py` |"
    )
    linked = lessons.FILE.sub(lessons.linked_module, row)
    assert "{py:mod}`minitransformer/layers/relu.py <minitransformer.layers.relu>`" in linked
    assert "<minitransformer.data>`" in linked


def test_a_link_to_the_explorer_leads_to_the_view_that_its_title_names():
    text = 'See [its heads](../README.md#look-inside "#view=attention&layer=2").'
    assert lessons.EXPLORER.sub(lessons.linked_view, text) == (
        'See <a href="../explorer.html#view=attention&amp;layer=2">its heads</a>.'
    )


def rendered(docstring):
    lines = docstring.splitlines()
    docstrings.as_restructured_text(None, "function", "f", None, None, lines)
    return "\n".join(lines)


def test_an_indented_formula_is_kept_as_it_is():
    docstring = "A sum.\n\n    y_j = |x| + *b*\n\n    z = 1\n\nIn words, |x| and ``|b|``."
    assert rendered(docstring) == (
        "A sum.\n\n::\n\n    y_j = |x| + *b*\n\n    z = 1\n\nIn words, \\|x\\| and ``|b|``."
    )


def test_the_arguments_of_a_function_are_no_formula():
    docstring = "A sum.\n\nArgs:\n    x: (B,).\n\n    y: (B,)."
    assert rendered(docstring) == docstring


def test_what_is_returned_has_no_type():
    docstring = "A sum.\n\nReturns:\n    For each x: its y.\n\nRaises:\n    ValueError: never."
    assert rendered(docstring) == docstring.replace("Returns:", ":returns:")


def test_a_package_lists_what_it_gives_and_links_it():
    module, lines = minitransformer.course.exercises, []
    docstrings.with_names(None, "module", module.__name__, module, None, lines)
    assert ":py:obj:`check_exercise`" in "".join(lines)


def test_twins_are_left_out_and_their_references_are_not():
    skip = docstrings.without_noise
    assert skip(None, "module", "layer_norm", cpu_layer_norm.layer_norm, False, None) is True
    assert skip(None, "module", "layer_norm", layer_norm, False, None) is None
