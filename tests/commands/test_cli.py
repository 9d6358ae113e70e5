"""The command line as a whole: help, errors, warnings, streams; each command has its own tests."""

import io
import os
import re
import runpy
import subprocess
import sys
import warnings
from contextlib import suppress

import pytest

import minitransformer
from minitransformer.commands import cli, info
from minitransformer.commands.cli import COMMANDS, main
from minitransformer.core.errors import InputError
from minitransformer.parallel.alone import Alone, ProcessError

SWITCH = "MINITRANSFORMER_TRACEBACK=1"


def test_the_package_runs_as_a_module(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["minitransformer", "--version"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_module("minitransformer", run_name="__main__")
    assert capsys.readouterr().out == f"minitransformer {minitransformer.__version__}\n"


def test_help_tells_of_every_command_and_of_the_switch_that_shows_tracebacks(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    said = capsys.readouterr().out
    assert " ".join(minitransformer.__doc__.split()) in " ".join(said.split())
    assert dict(re.findall(r"^    ([a-z]+)\s+(.+)", said, re.MULTILINE)) == COMMANDS
    assert SWITCH in said


@pytest.mark.parametrize("command", COMMANDS)
def test_help_says_of_each_option_what_it_is(command, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    options = re.findall(r"^  (-.*(?:\n {3,}.*)*)", capsys.readouterr().out, re.MULTILINE)
    assert len(options) > 0
    for option in options:
        assert re.search(r"\s{2,}\S", option), option


def failing(monkeypatch, error):
    def fail(options):
        raise error

    monkeypatch.setattr(info, "run", fail)


MEMORY = MemoryError("Unable to allocate 134. GiB")
NO_FILE = FileNotFoundError(2, "No such file or directory", "a/b")
UNFORESEEN = f" (to see where: {SWITCH} in the environment)"
ERRORS = [
    (NO_FILE, 1, "minitransformer: a/b: No such file or directory\n"),
    (OSError("no network"), 1, "minitransformer: no network\n"),
    (InputError("d_model=3 is odd"), 1, "minitransformer: d_model=3 is odd\n"),
    (minitransformer.DeviceError("no GPU"), 1, "minitransformer: no GPU\n"),
    (MEMORY, 1, f"minitransformer: there is not enough memory. {MEMORY}\n"),
    (ValueError("shapes (2,)"), 1, f"minitransformer: shapes (2,){UNFORESEEN}\n"),
    (FloatingPointError("NaN"), 1, f"minitransformer: NaN{UNFORESEEN}\n"),
    (KeyboardInterrupt(), 130, "\nminitransformer: interrupted\n"),
]


@pytest.mark.parametrize(("error", "status", "says"), ERRORS, ids=lambda value: repr(value)[:30])
def test_an_error_is_one_line(error, status, says, monkeypatch, capsys):
    """Which names the switch where nobody foresaw it."""
    failing(monkeypatch, error)
    assert main(["info"]) == status
    assert capsys.readouterr() == ("", says)


@pytest.mark.parametrize("error", [ValueError("shapes"), InputError("no gap"), OSError("full")])
def test_with_the_switch_every_error_shows_where_it_comes_from(error, monkeypatch, capsys):
    failing(monkeypatch, error)
    monkeypatch.setenv(*SWITCH.split("="))
    assert main(["info"]) == 1
    *where, last = capsys.readouterr().err.splitlines()
    assert "in fail" in where[-3]
    assert last.startswith(f"minitransformer: {error}")


def test_a_mistake_in_the_program_keeps_its_traceback(monkeypatch):
    failing(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        main(["info"])


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line_without_source_code(monkeypatch, capsys):
    monkeypatch.setattr(info, "run", lambda options: warnings.warn("passed over", stacklevel=1))
    main(["info"])
    assert capsys.readouterr().err == "minitransformer: passed over\n"


@pytest.mark.parametrize("asked", [
    *("train toy --from {}", "train toy --run-folder {}", "train toy --own {}", "train {}"),
    *("train --resume {}", "train multi30k --data-dir {}", "train gpt --text {}"),
    "evaluate {}",
])  # fmt: skip
def test_processes_may_have_their_files_in_other_places(asked, monkeypatch):
    """They are asked whether they were given one, and no more: machines differ in the rest."""
    facts = []

    class Several(Alone):
        count = 2

        def require_same(self, **of_rank):
            facts.append(of_rank)
            raise ProcessError("that is all")

    monkeypatch.setattr(cli, "all_processes", Several)
    for place in ("/here/a", "/there/b"):
        assert main(asked.format(place).split()) == 1
    here, there = facts
    assert here == there
    assert "given" in here.values()


# Streams


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("error", "status"), [(KeyboardInterrupt(), 130), (OSError("no network"), 1), (ValueError(), 1)]
)
def test_an_error_that_nobody_reads_has_its_status(error, status, monkeypatch):
    def warn_and_fail(options):
        warnings.warn("passed over", stacklevel=1)
        raise error

    monkeypatch.setattr(info, "run", warn_and_fail)
    read, write = os.pipe()
    os.close(read)
    with open(write, "wb", buffering=0) as pipe, io.TextIOWrapper(pipe, write_through=True) as log:
        monkeypatch.setattr("sys.stderr", log)
        assert main(["info"]) == status
        monkeypatch.undo()


def test_after_a_closed_pipe_standard_output_goes_nowhere(monkeypatch):
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as stdout:  # which keeps what is written until it is flushed
        monkeypatch.setattr("sys.stdout", stdout)
        assert main(["info"]) == 141
        stdout.write("what Python flushes on its way out")


@pytest.mark.skipif(os.name != "posix", reason="there are no such shells elsewhere")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_as_one_that_leads_nowhere(closed):
    command = f'"{sys.executable}" -m minitransformer train --help {closed}'
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("" if ">&-" in closed.split() else "usage")


@pytest.mark.parametrize("arguments", [
    ["--help"], ["train", "--help"], ["info"], ["check"], ["gradcheck", "softmax"],
], ids=" ".join)  # fmt: skip
def test_what_an_ascii_terminal_lacks_comes_out_escaped(arguments, monkeypatch):
    terminal = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("MINITRANSFORMER_DATA", "Wörter – „alle“ 😀\udce4")
    with suppress(SystemExit):  # as help ends
        assert main(arguments) == 0
    terminal.flush()
    printed = terminal.buffer.getvalue()
    if "--help" in arguments:
        assert " ".join(["usage: minitransformer", *arguments[:-1]]).encode() in printed
    assert printed
    if arguments == ["info"]:
        assert rb"W\xf6rter \u2013 \u201ealle\u201c \U0001f600\udce4" in printed
    if arguments == ["train", "--help"]:
        assert rb"\u03b5 of the loss" in printed
