"""What goes wrong in one of several processes ends all, with a message, and loses nothing."""

import contextlib
import os
import random
import re
import signal
import subprocess
import time

import pytest
from elsewhere import python
from jobs import environment, finished, interrupted, loaded, run, words, written
from tiny_run import tiny_recipe, trained
from waiting import HANGS, until

from minitransformer.runs.checkpoint.folder import checkpoint_path, checkpoints
from minitransformer.runs.lock import only_training
from minitransformer.runs.run_folder import RunFolder

PIPES = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def killed_often(recipe, folder, processes, kills):
    """Kill random processes of trainings at random moments, until there were so many kills.

    Each has to end all, and to be named but where not all were watched yet or the process was
    through and only had to end. All runs are brought to their ends, in FOLDER/run-0,
    FOLDER/run-1, …
    """
    rng, killed, runs = random.Random(kills), 0, 0
    while killed < kills:
        run_folder, pids = folder / f"run-{runs}", folder / f"pids-{killed}-{runs}"
        pids.mkdir()
        command = words(processes, _go_on(recipe, run_folder), trouble=f"pids:{pids}")
        with subprocess.Popen(command, **PIPES, env=environment(), text=True) as job:
            until(lambda pids=pids: len(list(pids.glob("?"))) == processes)
            time.sleep(rng.expovariate(1.0))
            rank = rng.randrange(processes)
            victim = int((pids / str(rank)).read_text())
            watched = len(list(pids.glob("*-watched"))) == processes
            with contextlib.suppress(ProcessLookupError):  # it has come to its end
                os.kill(victim, signal.SIGKILL)
            said = job.communicate(timeout=HANGS)[1]
        if job.returncode == 0:
            runs += 1
            continue
        killed += 1
        named = f"rank {rank} of {processes}, process {victim} on " in said
        assert named or not watched or (pids / f"{rank}-through").exists()
    if not (folder / f"run-{runs}" / "model.npz").exists():
        run(1, *_go_on(recipe, folder / f"run-{runs}"))


def _go_on(recipe, run_folder):
    if (run_folder / "config.json").exists():
        return "train", "--resume", run_folder
    return "train", recipe, "--run-folder", run_folder


@pytest.mark.parametrize(
    ("processes", "kills"), [(3, 1), pytest.param(2, 20, marks=pytest.mark.slow)]
)
def test_a_process_that_is_killed_ends_all_and_is_named_and_nothing_is_lost(
    recipe, whole, tmp_path, processes, kills
):
    killed_often(recipe, tmp_path, processes, kills)
    runs = list(tmp_path.glob("run-*"))
    assert runs
    for run_folder in runs:
        assert loaded(run_folder) == loaded(whole)


def test_ctrl_c_saves_once(recipe, tmp_path):
    folder = tmp_path / "run"
    said = interrupted(
        2, "train", recipe, "--save-every", 1000, "--epochs", 50, "--run-folder", folder, entries=2
    )
    assert said.count("stopped after step") == 1
    assert f"; go on: mpiexec -n 2 minitransformer train --resume {folder}\n" in said
    saved = [int(path.stem.removeprefix("step-")) for path in checkpoints(folder / "checkpoints")]
    (stopped,) = re.findall(r"stopped after step (\d+)", said)
    assert saved == [0, int(stopped)]
    assert RunFolder(folder).log.entries()[-1]["step"] == int(stopped)


TROUBLES = [  # of the second process, and what is said then, once
    ("nan:1", "the norm of its gradient nan, at step 3"),
    ("fail:1", r"rank 1 of 2 has failed and ends all\. .*no room for a gradient"),
    ("part:1", "parted ways: rank 1 gathers, where rank 0 adds up gradients"),
    ("version:1", r"minitransformer is 0\.0\.9 in rank 1 on \S+, and 0\.1\.0 in rank 0"),
]


@pytest.mark.parametrize(("trouble", "says"), TROUBLES, ids=dict(TROUBLES))
def test_trouble_in_one_process_ends_all_and_is_told(trouble, says, recipe, tmp_path):
    """Where they part ways, each would wait for what the other never sends."""
    arguments = "train", recipe, "--run-folder", tmp_path / "run"
    _, said = run(2, *arguments, trouble=trouble, status=1)
    assert len(re.findall(says, said)) == 1
    assert "has died" not in said


def test_one_that_is_asked_to_stop_does_not_wait_for_ever(recipe, tmp_path):
    """After the second step is saved nobody looks for signals before the end of the third one."""
    folder = tmp_path / "run"
    command = words(2, ("train", recipe, "--run-folder", folder), trouble="hang:1")
    with subprocess.Popen(command, **PIPES, env=environment(), text=True) as job:
        while job.poll() is None and not checkpoint_path(folder / "checkpoints", 2).exists():
            time.sleep(0.01)
        job.send_signal(signal.SIGTERM)
        try:
            said = job.communicate(timeout=HANGS)[1]
        finally:
            job.kill()
    assert job.returncode == 143, said
    assert said.count("stopped; go on from the last checkpoint: mpiexec -n 2 minitransformer") == 1
    assert "rank 0 of 2 waits for others in vain and ends all." in said


def test_two_jobs_in_one_folder_are_refused_and_a_kill_leaves_no_lock(recipe, tmp_path):
    """Here a SIGHUP that mpiexec does not pass on: it dies, and with it all."""
    folder = tmp_path / "run"
    arguments = "train", recipe, "--epochs", 1000, "--run-folder", folder
    command = words(2, arguments, trouble="slow:0")
    with subprocess.Popen(command, env=environment(), **PIPES) as job:
        until(RunFolder(folder).log.entries)
        _, said = run(2, "train", "--resume", folder, status=1)
        job.send_signal(signal.SIGHUP)
    assert said.count("is under way") == 1
    until(lambda: can_be_locked(folder))


def can_be_locked(folder):
    try:
        with only_training(folder):
            return True
    except BlockingIOError:
        return False


# Processes that differ


def of_two(first, second):
    """What is printed where two processes are asked for two things, and fail."""
    one, two = (words(2, arguments) for arguments in (first, second))
    mpiexec, _, _, *job = one
    done = finished([mpiexec, "-n", "1", *job, ":", "-n", "1", *two[3:]])
    assert done.returncode == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize(("second", "difference"), [
    ("train RECIPE --run-folder RUN --clip-norm 2", "clip_norm is 2.0 in rank 1 on"),
    ("train --resume RUN", "recipe is not there in rank 1 on"),
    ("evaluate RUN", "the command is evaluate in rank 1 on"),
    ("train --help", "the command is for help or a version in rank 1 on"),
])  # fmt: skip
def test_processes_that_are_asked_for_two_things_are_refused_and_no_run_is_made(
    recipe, tmp_path, second, difference
):
    placed = {"RECIPE": recipe, "RUN": tmp_path / "run"}
    first, second = (
        [placed.get(word, word) for word in asked.split()]
        for asked in ("train RECIPE --run-folder RUN", second)
    )
    assert of_two(first, second).count(difference) == 1
    assert not (tmp_path / "run").exists()


def test_processes_with_two_texts_are_refused(whole):
    said = of_two(["translate", whole, "bao"], ["translate", whole, "gi"])
    assert said.count("text is ['gi'] in rank 1 on") == 1


@pytest.mark.parametrize(
    ("kind", "command", "texts"),
    [("transformer", "translate", ["bao"]), ("language-model", "evaluate", [])],
)
def test_processes_with_two_runs_are_refused(kind, command, texts, tmp_path):
    """In folders that may lie elsewhere on each machine, and are to be the same run."""
    layers = {} if kind == "transformer" else dict(num_layers=1, subword_dropout=0.0)
    folders = [tmp_path / "0", tmp_path / "1"]
    for seed, folder in enumerate(folders):
        trained(tiny_recipe(tmp_path / "corpus", kind=kind, seed=seed, epochs=1, **layers), folder)
    said = of_two(*((command, folder, *texts) for folder in folders))
    assert re.search(r"parameters is of checksum \w+ in rank 1 on", said)


def test_processes_with_two_texts_are_refused_and_no_run_is_made(recipe, tmp_path):
    (tmp_path / "other").mkdir()
    other = written(tmp_path / "other")
    text = tmp_path / "other" / "corpus" / "train.source"
    text.write_text(text.read_text().upper())
    folder = "--run-folder", tmp_path / "run"
    said = of_two(("train", recipe, *folder), ("train", other, *folder))
    assert re.search("the training split is 40 pairs of SHA-256 .* in rank 1 on", said)
    assert not (tmp_path / "run").exists()


def test_another_mpiexec_than_that_of_mpi4py_is_told(recipe, tmp_path):
    """Each process would believe that it is alone, and train."""
    alone = words(1, ("train", recipe, "--run-folder", tmp_path / "run"))
    of_openmpi = dict(OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2")
    done = python(*alone[1:], **environment() | of_openmpi)
    assert done.returncode == 1
    assert "2 processes were started, and MPI knows of 1" in done.stderr
    assert not (tmp_path / "run").exists()


def test_without_mpi4py_several_processes_are_told_what_to_install():
    program = "import runpy, sys; sys.modules['mpi4py'] = None; runpy.run_module('minitransformer')"
    done = python("-c", program, "train", "toy", **environment(), PMI_RANK="0", PMI_SIZE="2")
    assert done.returncode == 1
    assert "python -m pip install mpi4py mpich" in done.stderr
