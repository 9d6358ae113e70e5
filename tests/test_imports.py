"""Imports stay short: what is not needed at once is not imported.

Seconds would tell more of the machine; ``benchmarks/import_time.py`` measures them.
"""

import subprocess
import sys

import pytest

import minitransformer

# Of the standard library what takes milliseconds, and whatever pip brings beside NumPy.
SLOW = {"asyncio", "concurrent", "email", "http", "json", "logging", "multiprocessing", "tempfile"}
SLOW |= {"unittest", "zipfile", "cupy", "matplotlib", "pooch", "sacrebleu"}
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
    command = [sys.executable, "-c", whole]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def rooms(modules):
    """What of the package is among them: ``"layers"`` for ``minitransformer.layers.relu``."""
    return {name.split(".")[1] for name in modules if name.startswith("minitransformer.")}


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


@pytest.mark.parametrize("name", ["Translator", "accelerate"])
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
