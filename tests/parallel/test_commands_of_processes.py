"""Commands that use a model, and info, of several processes; and what one imports of all this."""

import io
import json
import shlex
import shutil
import subprocess
import sys

import pytest
from jobs import MPIEXEC, environment, finished, run, words
from tiny_run import trained
from tiny_tasks import classification

from minitransformer.commands import cli
from minitransformer.core.libraries import library
from minitransformer.data.images.npz import read_npz


@pytest.fixture(scope="module")
def sentences(recipe):
    return (recipe.parent / "corpus" / "train.source").read_text()


@pytest.fixture
def alone(monkeypatch, capsys):
    """A function that gives arguments to the command line in this process: what that prints."""

    def alone(*arguments, read=""):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(read.encode())))
        assert cli.main([str(argument) for argument in arguments]) == 0
        return capsys.readouterr().out

    return alone


@pytest.mark.parametrize(
    ("processes", "options", "lines"), [(3, ("--beam-size", 1), 1), (2, ("--n-best", 2), 2)]
)
def test_a_file_is_translated_in_its_order(whole, sentences, alone, processes, options, lines):
    of_one = alone("translate", whole, *options, read=sentences)
    assert len(of_one.splitlines()) == lines * len(sentences.splitlines())
    assert run(processes, "translate", whole, *options, input=sentences)[0] == of_one


def test_a_file_that_mpiexec_would_not_pass_on_is_given_to_each_process(whole, alone, tmp_path):
    text = f"bao\n{'bao ' * 250_000}\nbi\n"  # of more than a pipe holds
    (tmp_path / "text").write_text(text)
    translate = shlex.join(words(1, ("translate", whole)))
    given = f"{translate} < {shlex.quote(str(tmp_path / 'text'))}"
    done = finished([MPIEXEC, "-n", "2", "sh", "-c", given])
    assert done.returncode == 0, done.stderr
    assert done.stdout == alone("translate", whole, read=text)
    assert len(done.stdout.splitlines()) == 3


def test_texts_that_are_given_are_translated_once(whole):
    printed, _ = run(2, "translate", whole, "baobi", "")
    assert len(printed.split("\n")) == 3


def test_a_text_that_is_no_text_is_told_once_and_fails(whole):
    options = dict(input="bao\udce4\nbi\n", errors="surrogateescape")
    printed, said = run(2, "translate", whole, status=1, **options)
    assert len(printed.splitlines()) == 2
    assert said.count("text 1: byte 0xe4 is not UTF-8") == 1


def test_a_run_is_scored_as_by_one_process(whole, alone, tmp_path):
    arguments = "evaluate", whole, "--split", "validation", "--checkpoints", "--json"
    printed = alone(*arguments, tmp_path / "1.json"), run(2, *arguments, tmp_path / "2.json")[0]
    scores = (json.loads((tmp_path / f"{count}.json").read_text())["scores"] for count in (1, 2))
    assert printed[0] == printed[1]
    assert next(scores) == next(scores)


def test_runs_are_compared_as_by_one_process(whole, alone, tmp_path):
    other = shutil.copytree(whole, tmp_path / "other")
    compare = "compare", whole, other, "--split", "validation", "--json"
    printed = alone(*compare, tmp_path / "1.json"), run(2, *compare, tmp_path / "2.json")[0]
    splits = (json.loads((tmp_path / f"{count}.json").read_text())["split"] for count in (1, 2))
    assert printed[0] == printed[1]
    assert next(splits) == next(splits)


def test_pictures_are_classified_and_counted_as_by_one_process(alone, tmp_path):
    recipe = classification(tmp_path / "corpus", epochs=1, shards=3)
    trained(recipe, tmp_path / "run")
    paths = [tmp_path / f"{i}.png" for i in range(3)]
    for path, picture in zip(paths, read_npz(recipe.data.pictures).pictures, strict=False):
        library("PIL.Image", "a file").fromarray(picture).save(path)
    classify = "classify", tmp_path / "run", *paths
    assert run(2, *classify)[0] == alone(*classify)
    printed, said = run(2, *classify, tmp_path / "none.png", status=1)
    assert printed == alone(*classify)
    assert said.count("No such file") == 1
    evaluate = "evaluate", tmp_path / "run", "--ten-crops"
    drawn = tmp_path / "confusion.svg"
    assert run(2, *evaluate, "--confusion", drawn)[0] == alone(*evaluate)
    assert drawn.exists()


def test_info_of_one_process_tells_of_mpi():
    assert "MPI: MPICH" in run(1, "info")[0]


@pytest.mark.parametrize(("threads", "of_blas"), [(1, "1 thread"), (2, "2 threads")])
def test_info_tells_of_the_processes_whose_blas_have_their_shares_of_the_cores(threads, of_blas):
    many = environment() | {"OPENBLAS_NUM_THREADS": "4"}
    command = words(2, ("info",), threads)
    said = subprocess.run(command, env=many, capture_output=True, text=True, check=True).stdout
    told = dict(line.split(": ", 1) for line in said.splitlines())
    assert "; 2 processes on " in told["MPI"]
    assert told["BLAS"].endswith(f", {of_blas}")


IMPORTS = """
import sys
from minitransformer.commands.cli import main
assert main(sys.argv[1:]) == 0
assert not {} & set(sys.modules)
"""


@pytest.mark.parametrize(("processes", "modules"), [
    (1, {"mpi4py", "minitransformer.parallel.mpi"}),
    (2, {"cupy", "minitransformer.parallel.nccl"}),
], ids=["one process, of MPI", "processes on CPUs, of NCCL"])  # fmt: skip
def test_what_is_not_needed_is_not_imported(recipe, tmp_path, processes, modules):
    mpiexec = [MPIEXEC, "-n", "2"] if processes > 1 else []
    train = "train", recipe, "--device", "cpu", "--epochs", "1", "--run-folder", tmp_path / "run"
    done = finished([*mpiexec, sys.executable, "-c", IMPORTS.format(modules), *train])
    assert done.returncode == 0, done.stderr
