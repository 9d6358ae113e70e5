"""The command line as a whole; its commands have their tests in ``commands/``."""

import io
import os
import re
import runpy
import subprocess
import sys
import warnings

import pytest

import minitransformer
from minitransformer.commands import cli, info
from minitransformer.commands.cli import main
from minitransformer.core.errors import InputError
from minitransformer.parallel.alone import Alone, ProcessError


def test_the_package_runs_as_a_module(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["minitransformer", "--version"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_module("minitransformer", run_name="__main__")
    assert capsys.readouterr().out == f"minitransformer {minitransformer.__version__}\n"


def test_no_command_is_an_error_that_lists_the_commands(capsys):
    with pytest.raises(SystemExit, match="2"):
        main([])
    errors = capsys.readouterr().err
    assert "usage: minitransformer" in errors
    assert re.search(r"^    train\s", errors, re.MULTILINE)


@pytest.mark.parametrize(
    ("command", "hint"),
    [("trian", "did you mean train?"), ("sing", "the commands are train, translate, generate, ")],
)
def test_a_mistyped_command_is_an_error_with_a_hint(command, hint, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([command, "toy"])
    assert f"error: there is no command {command!r}; {hint}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", ["train", "translate", "evaluate", "plot", "explore", "gradcheck", "check", "info"]
)
def test_help_tells_of_every_command(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert re.search(rf"^    {command}\s", capsys.readouterr().out, re.MULTILINE)
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    assert f"usage: minitransformer {command} " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["info", "--colour"], "--colour\n"),
        (["info", "run", "too much"], "too much\n"),
        (["train", "toy", "--epocs", "1"], "--epocs 1; did you mean --epochs?\n"),
        (["gradcheck", "--jsn=1"], "--jsn=1; did you mean --json?\n"),
    ],
)
def test_what_a_command_does_not_take_is_an_error_with_its_usage(arguments, says, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    said = capsys.readouterr().err
    assert said.startswith(f"usage: minitransformer {arguments[0]} ")
    assert said.endswith(f"error: unrecognized arguments: {says}")


@pytest.mark.parametrize(
    "arguments",
    [
        *(["train", *more] for more in (["--resume", ""], ["no recipe", "--from", ""], [""])),
        *(["train", "no recipe", f"--{name}", ""] for name in ("run-folder", "own", "epochs")),
        *(["train", "no recipe", f"--{name}="] for name in ("data-dir", "text", "kind", "device")),
        *([command, "", "a"] for command in ("translate", "generate", "fill", "tag")),
        *([command, ""] for command in ("info", "plot", "explore", "evaluate", "gradcheck")),
        *(["evaluate", "run", f"--{name}", ""] for name in ("split", "json", "output", "own")),
        *(["explore", "run", f"--{name}", ""] for name in ("output", "sentences")),
        *(["check", *more] for more in ([""], ["own", ""], ["own", "--file", ""])),
        ["translate", "run", "--attention", "", "a"],
    ],
    ids=" ".join,
)
def test_an_empty_value_as_of_a_variable_that_is_not_set_is_refused(arguments, capsys):
    assert status_of(arguments) == 2
    assert ": '' is empty; give a value, or leave it out\n" in capsys.readouterr().err


def failing(monkeypatch, error):
    def fail(options):
        raise error

    monkeypatch.setattr(info, "run", fail)


@pytest.mark.parametrize(
    "asked",
    [
        *("train toy --from {}", "train toy --run-folder {}", "train toy --own {}", "train {}"),
        *(
            "train --resume {}",
            "train multi30k --data-dir {}",
            "train gpt --text {}",
            "evaluate {}",
        ),
    ],
)
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


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (FileNotFoundError(2, "No such file or directory", "a/b"), "a/b: No such file or director"),
        (OSError("no network"), "no network"),
        (ValueError("d_model=3 is odd"), "d_model=3 is odd"),
        (FloatingPointError("it is NaN"), "it is NaN"),
        (minitransformer.DeviceError("no GPU"), "no GPU"),
    ],
)
def test_an_error_is_one_line_and_the_status_1(error, message, monkeypatch, capsys):
    failing(monkeypatch, error)
    assert main(["info"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"minitransformer: {message}")
    assert captured.err.count("\n") == 1


SWITCH = "MINITRANSFORMER_TRACEBACK=1"


@pytest.mark.parametrize("error", [ValueError("shapes (2,) (3,)"), FloatingPointError("overflow")])
def test_what_nobody_foresaw_names_the_switch_that_shows_where_it_comes_from(
    error, monkeypatch, capsys
):
    failing(monkeypatch, error)
    assert main(["info"]) == 1
    said = capsys.readouterr().err
    assert said == f"minitransformer: {error} (to see where: {SWITCH} in the environment)\n"
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert SWITCH in capsys.readouterr().out


@pytest.mark.parametrize("error", [ValueError("shapes"), InputError("no gap"), OSError("full")])
def test_with_the_switch_every_error_shows_where_it_comes_from(error, monkeypatch, capsys):
    failing(monkeypatch, error)
    monkeypatch.setenv(*SWITCH.split("="))
    assert main(["info"]) == 1
    *where, last = capsys.readouterr().err.splitlines()
    assert "in fail" in where[-3]
    assert last.startswith(f"minitransformer: {error}")


@pytest.mark.parametrize(
    "arguments",
    [
        "train toy --num-heads 3",
        "train toy --batch-tokens 0",
        "train toy --corpus paper",
        "train toy --languages de-fr",
        "train toy --kind mamba",
        "train multi30k-cpu --languages de-de",
        "train toy --device gpu",
    ],
)
def test_a_mistake_of_the_user_is_a_plain_line(arguments, tmp_path, capsys):
    assert main([*arguments.split(), "--run-folder", str(tmp_path / "run")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("minitransformer: ")
    assert SWITCH not in said


def test_a_mistake_in_the_program_keeps_its_traceback(monkeypatch):
    failing(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        main(["info"])


def test_an_interrupt_ends_with_130(monkeypatch, capsys):
    failing(monkeypatch, KeyboardInterrupt())
    assert main(["info"]) == 130
    assert capsys.readouterr().err == "\nminitransformer: interrupted\n"


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line_without_source_code(monkeypatch, capsys):
    monkeypatch.setattr(info, "run", lambda options: warnings.warn("passed over", stacklevel=1))
    main(["info"])
    assert capsys.readouterr().err == "minitransformer: passed over\n"


def test_a_reader_that_goes_away_is_no_traceback():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "minitransformer", "info"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


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


def test_after_a_closed_pipe_standard_output_goes_nowhere(tmp_path, monkeypatch):
    failing(monkeypatch, BrokenPipeError())
    with open(tmp_path / "out", "w") as stdout:
        monkeypatch.setattr("sys.stdout", stdout)
        assert main(["info"]) == 141
        stdout.write("what Python flushes on its way out")
    assert (tmp_path / "out").read_text() == ""


# Streams


@pytest.mark.skipif(os.name != "posix", reason="there are no such shells elsewhere")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_as_one_that_leads_nowhere(closed):
    command = f'"{sys.executable}" -m minitransformer check {closed}'
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("" if ">&-" in closed.split() else "ex")


@pytest.mark.parametrize(
    "arguments",
    [
        *([command, "--help"] for command in ("train", "translate", "evaluate", "plot")),
        *([command, "--help"] for command in ("explore", "gradcheck", "check", "info")),
        ["--help"],
        ["info"],
        ["check"],
        ["gradcheck", "softmax"],
    ],
    ids=" ".join,
)
def test_what_an_ascii_terminal_lacks_comes_out_escaped(arguments, monkeypatch):
    terminal = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("MINITRANSFORMER_DATA", "Wörter – „alle“ 😀\udce4")
    assert status_of(arguments) == 0
    terminal.flush()
    printed = terminal.buffer.getvalue()
    assert printed
    if arguments == ["info"]:
        assert rb"W\xf6rter \u2013 \u201ealle\u201c \U0001f600\udce4" in printed
    if arguments == ["train", "--help"]:
        assert rb"\u03b5 of the loss" in printed


def status_of(arguments):
    try:
        return main(arguments)
    except SystemExit as ended:
        return ended.code


def test_too_little_memory_is_one_line(monkeypatch, capsys):
    failing(monkeypatch, MemoryError("Unable to allocate 134. GiB"))
    assert main(["info"]) == 1
    message = "minitransformer: there is not enough memory. Unable to allocate 134. GiB\n"
    assert capsys.readouterr().err == message
