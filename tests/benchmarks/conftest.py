"""The benchmarks are scripts, not a package: their tests find them where ``python`` would."""

import io
import json
import sys
from contextlib import redirect_stdout
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))


def pytest_ignore_collect(collection_path, config):
    """PyTorch is not imported for files of which all tests are left out."""
    slow_with_torch = collection_path.name in ("test_decode.py", "test_torch_side.py")
    return True if slow_with_torch and config.option.markexpr == "not slow" else None


class Ran(NamedTuple):
    """What came of a script.

    Attributes:
        status: its exit status.
        printed: what it said.
        result: what it wrote.
        table: this as text.
        folder: where it wrote.
        page: the results page of that folder.
    """

    status: int
    printed: str
    result: dict
    table: str
    folder: Path
    page: str


@pytest.fixture(scope="session")
def ran(tmp_path_factory):
    """A function from the name of a script to what came of it on its tiny workload, done once."""
    import report
    from tiny_workload import WORKLOADS

    @cache
    def run(name):
        folder, script = tmp_path_factory.mktemp(name), import_module(name)
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
            options = WORKLOADS[name](script, folder, patch)
            status = script.main([str(option) for option in options])
            result = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
            table, page = script.table(result), report.page(folder)
        return Ran(status, printed.getvalue(), result, table, folder, page)

    return run
