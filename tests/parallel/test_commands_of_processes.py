"""translate, evaluate and info with several processes; and what one process imports of all this."""

import json
import shlex
import subprocess
import sys

import pytest
from jobs import MPIEXEC, environment, finished, run, words


@pytest.fixture(scope="module")
def sentences(recipe):
    return (recipe.parent / "corpus" / "train.source").read_text()


@pytest.mark.parametrize("options", [("--beam-size", 1), ("--n-best", 2)])
def test_a_file_is_translated_in_its_order(whole, sentences, options):
    alone, together = (
        run(processes, "translate", whole, *options, input=sentences)[0] for processes in (1, 3)
    )
    best = 2 if "--n-best" in options else 1
    assert len(alone.splitlines()) == best * len(sentences.splitlines())
    assert together == alone


def test_a_file_that_mpiexec_would_not_pass_on_is_given_to_each_process(whole, tmp_path):
    text = f"bao\n{'bao ' * 250_000}\nbi\n"  # of more than a pipe holds
    (tmp_path / "text").write_text(text)
    translate = shlex.join(words(1, ("translate", whole)))
    given = f"{translate} < {shlex.quote(str(tmp_path / 'text'))}"
    done = finished([MPIEXEC, "-n", "2", "sh", "-c", given])
    assert done.returncode == 0, done.stderr
    assert done.stdout == run(1, "translate", whole, input=text)[0]
    assert len(done.stdout.splitlines()) == 3


def test_texts_that_are_given_are_translated_once(whole):
    printed, _ = run(2, "translate", whole, "baobi", "")
    assert len(printed.split("\n")) == 3


def test_a_text_that_is_no_text_is_told_once_and_fails(whole):
    options = dict(input="bao\udce4\nbi\n", errors="surrogateescape")
    printed, said = run(2, "translate", whole, status=1, **options)
    assert len(printed.splitlines()) == 2
    assert said.count("text 1: byte 0xe4 is not UTF-8") == 1


def test_a_run_is_scored_as_by_one_process(whole, tmp_path):
    printed, scores = [], []
    for processes in (1, 2):
        file = tmp_path / f"{processes}.json"
        arguments = "--split", "validation", "--checkpoints", "--json", file
        printed.append(run(processes, "evaluate", whole, *arguments)[0])
        scores.append(json.loads(file.read_text())["scores"])
    assert printed[0] == printed[1]
    assert scores[0] == scores[1]


def test_info_tells_of_mpi_and_of_the_processes():
    assert "MPI: MPICH" in run(1, "info")[0]
    (line,) = [line for line in run(2, "info")[0].splitlines() if line.startswith("MPI: ")]
    assert "; 2 processes on " in line


def test_the_blas_of_each_process_has_its_share_of_the_cores_alone():
    many = environment() | {"OPENBLAS_NUM_THREADS": "4"}
    for threads, words_of_threads in ((1, "1 thread"), (2, "2 threads")):
        command = words(2, ("info",), threads)
        said = subprocess.run(command, env=many, capture_output=True, text=True, check=True).stdout
        (line,) = [line for line in said.splitlines() if line.startswith("BLAS: ")]
        assert line.endswith(f", {words_of_threads}")


def test_one_process_imports_nothing_of_mpi(recipe, tmp_path):
    program = (
        "import sys\nfrom minitransformer.commands.cli import main\n"
        f"status = main(['train', {str(recipe)!r}, '--epochs', '1', "
        f"'--run-folder', {str(tmp_path / 'run')!r}])\n"
        "assert status == 0\n"
        "assert not {'mpi4py', 'minitransformer.parallel.mpi'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], env=environment(), check=True)
