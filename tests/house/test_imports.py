"""Imports go one way from room to room, and stay short: what is not needed is not imported.

Seconds would tell more of the machine; ``benchmarks/import_time.py`` measures them.
"""

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from elsewhere import in_a_process

import minitransformer

PACKAGE = Path(minitransformer.__file__).parent

# A room imports those of the lines below its own.
ORDER = [
    {"__main__.py"},
    {"commands"},
    {"course", "explorer"},
    {"training"},
    {"tasks"},
    {"inference", "evaluation"},
    {"decoding", "runs"},
    {"models"},
    {"parallel", "loss"},
    {"optim", "layers"},
    {"core", "version.py"},
]
MATHEMATICS = {"models", "loss", "optim", "layers"}
# What stands beside the order: what it imports, and who imports it.
BESIDE = {
    "__init__.py": (
        {"inference", "models", "loss", "optim", "core", "version.py", "accelerate"},
        {"commands"},
    ),
    "accelerate": ({"loss", "optim", "layers", "core"}, {"__init__.py"}),
    "gradcheck": ({"core"}, {"cases", "commands", "course"}),
    "cases": ({"gradcheck", "data", "core"} | MATHEMATICS, {"commands", "course"}),
    "data": ({"core"}, set().union(*ORDER[:-1], {"cases"}) - MATHEMATICS),
}

# Of the standard library what takes milliseconds, and whatever pip brings beside NumPy.
SLOW = {"asyncio", "concurrent", "email", "http", "json", "logging", "multiprocessing", "tempfile"}
SLOW |= {"unittest", "zipfile", "cupy", "matplotlib", "PIL", "pooch", "sacrebleu"}
SLOW |= {"sentencepiece", "threadpoolctl", "tqdm"}

VERSION = """
from minitransformer.commands.cli import main
try:
    main(["{}"])
except SystemExit:
    pass
"""


def imported_by(program):
    """The names of all modules that a new process imports for ``program``, but not for NumPy."""
    whole = f"import sys, numpy\nbefore = set(sys.modules)\n{program}\n"
    whole += "print(*sorted(set(sys.modules) - before))"
    return set(in_a_process(whole).splitlines()[-1].split())


def rooms(modules):
    """What of the package is among them: ``"layers"`` for ``minitransformer.layers.relu``."""
    return {name.split(".")[1] for name in modules if name.startswith("minitransformer.")}


@cache
def files():
    """The package's files, as paths relative to it, with the modules that each imports."""
    modules = {
        ".".join(("minitransformer", *path.with_suffix("").parts)).removesuffix(".__init__"): path
        for path in (file.relative_to(PACKAGE) for file in PACKAGE.rglob("*.py"))
    }
    return {
        path: {
            modules[f"{module}.{name}" if f"{module}.{name}" in modules else module]
            for module, name in imports(ast.parse((PACKAGE / path).read_text(encoding="utf-8")))
            if module in modules
        }
        for path in modules.values()
    }


def imports(node):
    """Yield (module, name or "") of all imports in a tree, but for those that only types need."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Import):
        yield from ((alias.name, "") for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from ((node.module, alias.name) for alias in node.names)
    for child in ast.iter_child_nodes(node):
        yield from imports(child)


def is_allowed(room, other):
    """Whether a room, a folder or file of the package, may import another one."""
    if room in BESIDE:
        return other in BESIDE[room][0]
    if other in BESIDE:
        return room in BESIDE[other][1]
    line, of_other = (next(i for i, line in enumerate(ORDER) if r in line) for r in (room, other))
    return line < of_other


def broken(imported_by_files):
    """The arrows that the order of the rooms does not allow, each in words."""
    return [
        f"{path.as_posix()} imports {other.as_posix()}: {room} ↛ {other.parts[0]}"
        for path, others in imported_by_files.items()
        for other in sorted(others)
        if (room := path.parts[0]) != other.parts[0] and not is_allowed(room, other.parts[0])
    ]


def test_rooms_import_one_another_downwards_alone():
    found = files()
    assert len(found) > 200
    assert not broken(found)


def test_no_files_import_each_other_in_a_circle():
    TopologicalSorter(files()).prepare()


@pytest.mark.parametrize(("file", "other"), [
    ("models/model.py", "runs/lock.py"),
    ("layers/relu.py", "data/text/corpus.py"),
    ("inference/trained.py", "evaluation/scores.py"),
    ("gradcheck/check.py", "layers/relu.py"),
    ("training/session.py", "accelerate/cpu/memory.py"),
    ("data/text/batches.py", "layers/masks.py"),
    ("core/module.py", "gradcheck/check.py"),
])  # fmt: skip
def test_an_arrow_upwards_is_found_and_named(file, other):
    assert broken({Path(file): {Path(other)}}) == [
        f"{file} imports {other}: {Path(file).parts[0]} ↛ {Path(other).parts[0]}"
    ]


def test_a_circle_is_found():
    with pytest.raises(CycleError):
        TopologicalSorter({"a": {"b"}, "b": {"a"}}).prepare()


def test_imports_within_functions_count_and_those_of_types_do_not():
    late = "def f():\n    from minitransformer.a import b"
    of_types = "if TYPE_CHECKING:\n    import minitransformer.c"
    tree = ast.parse(f"{late}\n{of_types}")
    assert list(imports(tree)) == [("minitransformer.a", "b")]


def test_the_package_imports_the_mathematics_and_nothing_slow():
    modules = imported_by("import minitransformer")
    assert "layers" in rooms(modules)
    assert not rooms(modules) & {"accelerate", "data", "decoding", "runs"}
    assert not {name.partition(".")[0] for name in modules} & {*SLOW, "argparse"}


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_the_command_line_imports_no_command_to_tell_of_itself(flag):
    modules = imported_by(VERSION.format(flag))
    assert "argparse" in modules
    ours = {name for name in modules if name.startswith("minitransformer.commands.")}
    assert ours == {"minitransformer.commands.cli"}
    assert not {name.partition(".")[0] for name in modules} & SLOW


@pytest.mark.parametrize("name", ["Classifier", "Translator", "accelerate"])
def test_what_is_imported_later_is_there_however_it_is_asked_for(name):
    modules = imported_by(f"import minitransformer; minitransformer.{name}")
    assert modules == imported_by(f"from minitransformer import {name}")
    assert name in dir(minitransformer)


def test_a_star_brings_every_public_name():
    names = {}
    exec("from minitransformer import *", names)
    assert set(minitransformer.__all__) <= names.keys()


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'minitransformer' has no attribute 'Translater'"):
        minitransformer.Translater  # noqa: B018
