"""Each lesson runs, is built, and has the parts that a lesson has."""

import ast
import copy
import importlib.util
import inspect
import pkgutil
import re
import subprocess
import textwrap
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from elsewhere import in_a_process, module_at, python

import minitransformer.layers
from minitransformer.course.exercises import check_exercise, exercise_names, parts_of
from minitransformer.course.notebooks import source_of
from minitransformer.course.own.package import FUNCTIONS
from minitransformer.course.stops import show
from minitransformer.layers.relu import relu

LESSONS = Path(__file__).parents[2] / "lessons"
build = module_at(LESSONS / "build.py")
SOURCES = build.sources()
PLAN = (LESSONS / "README.md").read_text(encoding="utf-8")
IN_ORDER = re.findall(r"^\| \[\d\d\]\((\w+)\.ipynb\)", PLAN, re.MULTILINE)
COURSE = [name for name in IN_ORDER if name < "90"]  # what follows are appendices
TINY = """# %% [markdown]
# # A title

# %%
import matplotlib.pyplot as plt
print(6 * 7)
plt.plot([1, 2])
plt.show()
"""
FOLDED = '# %% tags=["hide-input"]\n'
each_lesson = pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)


def exercise_of(source):
    """That of the lesson on your own Transformer is the file which all lessons fill."""
    return "own" if source.stem.endswith("your_own_transformer") else f"ex{source.stem[:2]}"


RUN = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"
WITH_ARRAYS_LIKE_CUPYS = """
import minitransformer
from strict_cupy import strict
device = minitransformer.core.backend.Device("stand-in", strict)
minitransformer.select_device = lambda name: device
"""

WITHOUT_SMOLLM2 = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if "smollm2" in name else find(name, *more)
"""


def output_of(program, source):
    """What a lesson prints, run as a script."""
    # More threads would wait for each other on a busy machine.
    variables = dict(MPLBACKEND="agg", OPENBLAS_NUM_THREADS="1", PYTHONIOENCODING="utf-8")
    path = LESSONS.parent, LESSONS.parent / "tests/kit"
    done = python("-W", "error", "-c", program, source.name, path=path, cwd=LESSONS, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("program", [RUN, WITH_ARRAYS_LIKE_CUPYS + RUN], ids=["cpu", "stand-in"])
@each_lesson
def test_a_lesson_runs_and_gives_no_answer_away(source, program):
    parts = parts_of(exercise_of(source))
    assert f"0 of {len(parts)} right" in output_of(program, source)


@pytest.mark.slow
def test_the_lesson_on_real_weights_makes_do_with_its_own_where_there_are_none():
    (source,) = (source for source in SOURCES if source.stem == "28_your_own_llama")
    said = output_of(WITHOUT_SMOLLM2 + RUN, source)
    assert "57,744 parameters" in said
    assert "0 of 4 right" in said


@each_lesson
def test_the_notebook_is_in_step_with_its_source(source):
    assert build.in_step(source), f"python lessons/build.py {source.stem}"


@each_lesson
def test_the_notebook_was_executed_from_top_to_bottom_without_an_error(source):
    cells = nbformat.read(source.with_suffix(".ipynb"), as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert not any(output.output_type == "error" for output in outputs)
    assert not any(output.get("name") == "stderr" for output in outputs)
    for cell in code:
        shown = sum("image/png" in output.get("data", {}) for output in cell.outputs)
        assert shown >= cell.source.count("plt.show()"), cell.source


@each_lesson
def test_the_notebook_is_small_and_names_no_place_of_the_machine_that_built_it(source):
    text = source.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert len(text.encode()) < 300_000
    assert not re.search(r"/(home|root|tmp|work|Users|usr|opt)/|[A-Z]:\\\\", text)


def test_every_lesson_begins_by_installing_the_package_where_it_is_missing(monkeypatch, tmp_path):
    (first,) = {build.notebook_from(source).cells[1].source for source in SOURCES}
    installed = []
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "run", lambda command, check: installed.append(command[-1]))
        exec(first, {})
        assert installed == []  # it is there
        patch.setattr(importlib.util, "find_spec", lambda name: None)
        patch.chdir(LESSONS)
        exec(first, {})
        patch.chdir(tmp_path)  # where nothing says what package of that name it would be
        with pytest.raises(ModuleNotFoundError, match="pip install FOLDER_OF_THE_PROJECT"):
            exec(first, {})
    assert installed == [".."]


@each_lesson
def test_cells_that_install_and_import_are_folded_away(source):
    cells = [cell for cell in build.notebook_from(source).cells if cell.cell_type == "code"]
    importing = [cell for cell in cells if re.search(r"^(import|from) ", cell.source, re.MULTILINE)]
    assert importing[:2] == cells[:2]
    unfolded = [
        cell.source for cell in importing if "hide-input" not in cell.metadata.get("tags", ())
    ]
    assert unfolded == []


@each_lesson
def test_a_lesson_has_the_parts_that_a_lesson_has(source):
    text = source.read_text(encoding="utf-8")
    assert f"\n# # {source.stem[:2]} · " in text
    for needed in (
        "| In the paper |",
        "| In the package |",
        "| Time |",
        "shape_table(",
        "assert ",
        "plt.show()",
        'device = select_device("cpu")  # "cuda"',
        "· Exercises",
        f"(exercises/{exercise_of(source)}.py)",
        f"(solutions/{exercise_of(source)}.py)",
        f'print(check_exercise("{exercise_of(source)}", globals()))',
        "# ## On one card",
    ):
        assert needed in text, needed
    assert "\nsource_of(" in text or "\nshow(" in text


@each_lesson
def test_a_lesson_tells_of_each_exercise_and_its_time(source):
    text = source.read_text(encoding="utf-8")
    for part in parts_of(exercise_of(source)):
        assert f"**`{part.functions[0]}`** ({part.minutes} min)." in text


def functions_of_own_from(source):
    """Those of own.py that a lesson derives; that a backward comes along goes without saying."""
    parts = [part for part in parts_of("own") if part.lesson == source.stem[:2]]
    names = {name for part in parts for name in part.functions}
    return {name for name in names if not name.endswith("_backward")}


@each_lesson
def test_a_lesson_ends_with_the_functions_of_own_that_it_enables(source):
    end = source.read_text(encoding="utf-8").partition("# ## On one card\n")[2]
    assert "`minitransformer check own`" in end
    assert {name for name in functions_of_own_from(source) if f"`{name}`" not in end} == set()


@pytest.mark.parametrize(("name", "following"), list(pairwise(COURSE)))
def test_a_lesson_leads_to_the_one_after_it_in_the_plan(name, following):
    first_link = re.compile(r"# \*\*Next:\*\*[^(]*?\]\((\w+\.ipynb)\)")
    text = (LESSONS / f"{name}.py").read_text(encoding="utf-8")
    assert first_link.findall(text) == [f"{following}.ipynb"]


@each_lesson
def test_the_list_of_lessons_names_the_functions_of_own_that_each_enables(source):
    start = f"| [{source.stem[:2]}]({source.stem}.ipynb) |"
    (row,) = [row for row in PLAN.splitlines() if row.startswith(start)]
    assert set(re.findall(r"`(\w+)`", row)) == functions_of_own_from(source)


@each_lesson
def test_a_lesson_defines_no_function_of_the_layers_again(source):
    layers = pkgutil.iter_modules(minitransformer.layers.__path__, "minitransformer.layers.")
    modules = [importlib.import_module(layer.name) for layer in layers]
    ours = {name for module in modules for name, _ in inspect.getmembers(module, callable)}
    tree = ast.parse(source.read_text(encoding="utf-8"))
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert "layer_norm" in ours
    assert not defined & ours


def without_indents(text):
    return re.sub(r"\n +", "\n", text)


SHOWN = {name: without_indents(inspect.getsource(f)).strip() for name, f in FUNCTIONS.items()}


def written_and_shown(source):
    """For each cell of code the functions of own.py that readers write there, and that it shows."""
    for cell in nbformat.read(source.with_suffix(".ipynb"), as_version=4).cells:
        if cell.cell_type == "code":
            facts = re.findall(r"^def facts\(([^)]*)\)", cell.source, re.MULTILINE)
            outputs = [output.get("data", {}).get("text/markdown", "") for output in cell.outputs]
            text = without_indents("".join(outputs))
            yield (
                {name for names in facts for name in re.findall(r"\w+", names)},
                {name for name, code in SHOWN.items() if code in text},
            )


@each_lesson
def test_what_a_lesson_shows_of_own_readers_have_written_before(source):
    """There, or in a lesson that comes before it."""
    so_far = set()
    for lesson in SOURCES[: SOURCES.index(source) + 1]:
        for written, shown in written_and_shown(lesson):
            so_far |= written
            assert lesson != source or shown <= so_far, shown - so_far


OPERATION = ast.BinOp | ast.UnaryOp | ast.Call | ast.keyword


def expressions(text):
    """All in a piece of code with four operations or more, whatever their variables are called."""
    for node in ast.walk(ast.parse(text)):
        inside = (
            list(ast.walk(copy.deepcopy(node))) if isinstance(node, ast.BinOp | ast.Call) else []
        )
        if sum(isinstance(other, OPERATION) for other in inside) >= 4:
            names = {"np": "np", "xp": "np"}
            for other in inside:
                if isinstance(other, ast.Name):
                    other.id = names.setdefault(other.id, f"name_{len(names)}")
            yield ast.unparse(inside[0])


BODIES = {  # by its expressions, the first lesson that has a reader write one
    code: part.lesson
    for part in reversed(parts_of("own"))
    for name in part.functions
    for code in expressions(textwrap.dedent(inspect.getsource(FUNCTIONS[name])))
}


@each_lesson
def test_no_open_cell_gives_a_body_away_before_readers_have_written_it(source):
    """Of functions of this lesson or a later one."""
    given = {
        code
        for cell in build.notebook_from(source).cells
        if cell.cell_type == "code" and build.FOLDED not in cell.metadata.get("tags", ())
        for code in expressions(cell.source)
        if BODIES.get(code, "") >= source.stem[:2]
    }
    assert given == set()


@each_lesson
def test_a_lesson_stops_for_each_function_of_own_that_it_enables(source):
    written, shown = (set().union(*sets) for sets in zip(*written_and_shown(source), strict=True))
    assert functions_of_own_from(source) <= written & shown


@each_lesson
def test_the_notebook_is_that_of_a_reader_whose_functions_satisfy_all_facts(source):
    cells = nbformat.read(source.with_suffix(".ipynb"), as_version=4).cells
    for cell in cells:
        if "\ntry_yours(" in cell.source:
            (said,) = cell.outputs
            assert all(line.startswith("✓ ") for line in said.text.splitlines()), said.text


def test_every_exercise_belongs_to_a_lesson():
    assert exercise_names() == sorted(exercise_of(source) for source in SOURCES)


@pytest.fixture
def tiny(tmp_path):
    source = tmp_path / "99_tiny.py"
    source.write_text(TINY)
    return source


def test_a_source_without_a_notebook_is_out_of_step(tiny):
    assert not build.in_step(tiny)


def test_the_code_of_a_tagged_cell_is_folded_away_in_jupyter_in_colab_and_on_the_site(tiny):
    tiny.write_text(TINY.replace("# %%\n", FOLDED) + "\n# %%\nprint(1)\n")
    _, folded, open_ = build.notebook_from(tiny).cells
    assert folded.metadata.jupyter.source_hidden is True
    assert folded.metadata.cellView == "form"
    assert folded.metadata.tags == ["hide-input"]  # by which the site folds it
    assert not {"jupyter", "cellView", "tags"} & set(open_.metadata)


@pytest.mark.parametrize(
    "change",
    [("6 * 7", "6 * 8"), ("A title", "Another"), ("# %%\n", "\n"), ("# %%\n", FOLDED)],
)
def test_a_changed_source_is_out_of_step(tiny, change):
    nbformat.write(build.notebook_from(tiny), tiny.with_suffix(".ipynb"))
    assert build.in_step(tiny)
    tiny.write_text(TINY.replace(*change))
    assert not build.in_step(tiny)


@pytest.mark.parametrize(("code", "shown"), [
    (
        "from minitransformer.course.exercises import check_exercise\n"
        'print(check_exercise("ex07", globals()))',
        {"text": f"{check_exercise('ex07', {})}\n"},
    ),
    (
        "from minitransformer.course.notebooks import source_of\n"
        "from minitransformer.layers.relu import relu\nsource_of(relu)",
        {"data": {"text/markdown": source_of(relu).markdown}},
    ),
    (
        'from minitransformer.course.stops import show\nshow("relu")',
        {"data": {"text/markdown": show("relu", anyway=True).markdown}},
    ),
], ids=["an exercise", "source", "a part of own.py"])  # fmt: skip
def test_a_notebook_that_shows_what_has_changed_is_out_of_step(code, shown, tiny):
    tiny.write_text(f"{TINY}\n# %%\n{code}\n")
    notebook = build.notebook_from(tiny)
    kind = "stream" if "text" in shown else "execute_result"
    notebook.cells[-1].outputs = [nbformat.v4.new_output(kind, **shown)]
    nbformat.write(notebook, tiny.with_suffix(".ipynb"))
    assert build.in_step(tiny)
    text = tiny.with_suffix(".ipynb").read_text(encoding="utf-8")
    old, new = (" min", " hours") if "text" in shown else ("def relu(x)", "def relu(z)")
    assert old in text
    tiny.with_suffix(".ipynb").write_text(text.replace(old, new), encoding="utf-8")
    assert not build.in_step(tiny)


@pytest.mark.slow
def test_a_notebook_is_built_with_its_outputs_and_the_same_each_time(tiny):
    pytest.importorskip("ipykernel", reason="notebooks are executed by ipykernel: extra lessons")
    program = (
        "import runpy, sys; from pathlib import Path;"
        "runpy.run_path(sys.argv[1])['build'](Path(sys.argv[2]))"
    )
    built = []
    for backend in ({}, {"MPLBACKEND": "agg"}):  # with which a notebook alone would show no plots
        in_a_process(program, LESSONS / "build.py", tiny, **backend)
        built.append(tiny.with_suffix(".ipynb").read_bytes())
    assert built[0] == built[1]
    assert b'"42\\n"' in built[0]
    assert b'"image/png"' in built[0]
    assert build.in_step(tiny)
