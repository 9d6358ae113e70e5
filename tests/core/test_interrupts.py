"""How a process is asked to stop, shown with real processes and real signals.

What a training saves when Ctrl-C stops it is in ``training/test_resume.py``.
"""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from elsewhere import in_a_thread, python
from tiny_run import record, tiny_recipe, tiny_trainer, trained

from minitransformer.commands.cli import main
from minitransformer.core.interrupts import (
    SIGNALS,
    Stopped,
    interrupts_noted,
    interrupts_raised,
    noted,
    stopped_by_interrupts,
)
from minitransformer.tasks import splits

ROOT = Path(__file__).parents[2]
STATUSES = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}
STATUSES = {name: status for name, status in STATUSES.items() if hasattr(signal, name)}

PAUSED = """if True:
    import sys
    from minitransformer.commands.cli import main
    from minitransformer.commands import plot
    from minitransformer.training.trainer import Trainer

    plot.draw = lambda run_folder: None  # takes longer than all the rest
    take_step = Trainer.take_step

    def take_step_and_pause(self, *arguments):
        take_step(self, *arguments)
        if self.step == 2:
            print("paused", flush=True)
            sys.stdin.readline()

    Trainer.take_step = take_step_and_pause
    sys.exit(main(["train", *sys.argv[1:]]))
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return tiny_recipe(tmp_path_factory.mktemp("corpus"), epochs=1, shards=1)


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """The record of a run that nobody interrupts."""
    folder = tmp_path_factory.mktemp("whole")
    trained(corpus, folder)
    return record(folder)


@pytest.fixture
def run(corpus, tmp_path):
    """A run folder that is set up and has no step yet, as ``train --resume`` takes it."""
    tiny_trainer(corpus, tmp_path / "run")
    return tmp_path / "run"


@contextmanager
def paused(run, *before):
    """A process that goes on with the run and waits after step 2 for its standard input to end."""
    command = [*before, sys.executable, "-W", "error", "-c", PAUSED, "--resume", run]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, **pipes) as process:
        assert process.stdout.readline() == "paused\n"
        yield process


# A training


@pytest.mark.parametrize("name", STATUSES)
def test_a_training_saves_and_ends_with_the_status_that_a_shell_reports(name, run, corpus, whole):
    with paused(run) as process:
        process.send_signal(getattr(signal, name))
        _, said = process.communicate()
    assert process.returncode == STATUSES[name]
    stopped, _, command = said.splitlines()[-1].partition("; go on: ")
    assert stopped == "stopped after step 2"
    assert command == f"minitransformer train --resume {run}"
    resumed = tiny_trainer(corpus, run)
    assert resumed.step == 2
    resumed.train()
    assert record(run) == whole


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="the system has no SIGHUP")
def test_senders_that_repeat_themselves_do_not_hinder_the_saving(run, corpus):
    """As a shell and the system do when a terminal is closed."""
    trainer = tiny_trainer(corpus, run)
    log = trainer.run.log.append

    def log_and_signal(entry):
        log(entry)
        for name in ("SIGINT", "SIGHUP", "SIGHUP", "SIGTERM", "SIGTERM"):
            signal.raise_signal(getattr(signal, name))

    trainer.run.log.append = log_and_signal
    with pytest.raises(Stopped) as stop:
        trainer.train()
    assert stop.value.signum == signal.SIGINT
    assert tiny_trainer(corpus, run).step == 1


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="the system has no SIGHUP")
def test_what_was_ignored_before_stays_ignored(run, whole):
    """As a shell starts what it runs in the background, and nohup everything."""
    with paused(run, "sh", "-c", 'trap "" INT HUP; exec "$@"', "sh") as process:
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGHUP)
        _, said = process.communicate()
    assert process.returncode == 0, said
    assert record(run) == whole


@pytest.mark.parametrize("name", STATUSES)
def test_the_preparation_ends_quietly_and_leaves_nothing(name, tmp_path, monkeypatch, capsys):
    def told_to_stop(*_):
        signal.raise_signal(getattr(signal, name))

    monkeypatch.setattr(splits, "toy_corpus", told_to_stop)
    assert main(["train", "toy", "--run-folder", str(tmp_path / "runs" / "run")]) == STATUSES[name]
    assert capsys.readouterr().err == "\nminitransformer: interrupted\n"
    assert not list(tmp_path.iterdir())


# A log that nobody reads


def test_a_dead_reader_of_the_log_ends_no_training(run, whole):
    """train toy 2>&1 | head -1"""
    reader, log = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "minitransformer", "train", "--resume", run]
    done = subprocess.run(command, stdout=log, stderr=log, check=False)
    os.close(log)
    assert done.returncode == 0
    assert record(run) == whole


# Handlers


@pytest.mark.parametrize("signum", SIGNALS)
def test_what_each_signal_stops_tells_which_it_was(signum):
    with pytest.raises(Stopped) as raised, stopped_by_interrupts():
        signal.raise_signal(signum)
    assert raised.value.signum == signum


def test_signals_are_noted_in_their_order_and_a_second_one_raises_if_it_is_ctrl_c():
    with interrupts_noted() as signals:
        for signum in (signal.SIGTERM, signal.SIGTERM):
            signal.raise_signal(signum)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signals == [signal.SIGTERM, signal.SIGTERM]


def test_what_was_noted_is_known_as_long_as_it_is_being_noted():
    with interrupts_noted(), interrupts_noted() as within:
        signal.raise_signal(signal.SIGTERM)
        assert noted() is within
    assert noted() == []


@pytest.mark.parametrize("handled", [interrupts_raised, interrupts_noted])
def test_afterwards_every_handler_is_what_it_was(handled):
    before = [signal.getsignal(signum) for signum in SIGNALS]
    with handled():
        assert all(signal.getsignal(signum) not in before for signum in SIGNALS)
    assert [signal.getsignal(signum) for signum in SIGNALS] == before


@pytest.mark.parametrize("handled", [interrupts_raised, interrupts_noted])
def test_another_thread_leaves_signals_alone(handled):
    before = [signal.getsignal(signum) for signum in SIGNALS]

    def within():
        with handled():
            return [signal.getsignal(signum) for signum in SIGNALS]

    assert in_a_thread(within) == before


# The start of the command


def interrupted_while_importing(library, arguments, folder):
    """The result of Python, with Ctrl-C pressed while it imports ``library``."""
    (folder / "libraries").mkdir()
    fake = folder / "libraries" / f"{library}.py"
    fake.write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n")
    return python(*arguments, path=(fake.parent, ROOT))


@pytest.mark.parametrize("library", ["numpy", "argparse", "tomllib"])
@pytest.mark.parametrize("how", ["module", "script"])
def test_ctrl_c_while_the_command_is_imported_ends_it_quietly(how, library, tmp_path):
    script = tmp_path / "minitransformer"  # what pip makes of the entry point in setup.cfg
    script.write_text(
        "import sys\nfrom minitransformer.commands.cli import main\n"
        "sys.exit(main(['train', 'toy', '--dry-run']))\n"
    )
    arguments = [script] if how == "script" else ["-m", "minitransformer", "train", "toy"]
    done = interrupted_while_importing(library, arguments, tmp_path)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert done.stderr in ("", "\nminitransformer: interrupted\n")


def test_a_program_that_imports_the_package_has_its_own_ctrl_c(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "try:\n    import minitransformer\nexcept KeyboardInterrupt:\n    print('mine')\n"
    )
    assert interrupted_while_importing("numpy", [program], tmp_path).stdout == "mine\n"
    with pytest.raises(KeyboardInterrupt):  # and so have these tests
        signal.raise_signal(signal.SIGINT)
