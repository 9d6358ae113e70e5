"""Several processes, each with a GPU: the strict stand-in plays CuPy, and MPI plays NCCL."""

import json
import re
import sys
from pathlib import Path

import pytest
from jobs import MPIEXEC, finished, interrupted, loaded, run, written

from minitransformer.core.backend import CPU, DeviceError
from minitransformer.parallel.alone import ALONE
from minitransformer.parallel.gpus import own_device


@pytest.fixture(scope="module")
def of_gpus(tmp_path_factory):
    """A file with a recipe that has one shard for each GPU, and logs every other step."""
    return written(tmp_path_factory.mktemp("gpus"), shards=0, log_every=2)


@pytest.fixture(scope="module")
def one_gpu(of_gpus, tmp_path_factory):
    """The folder of a run of two shards of one process on one GPU."""
    folder = tmp_path_factory.mktemp("one") / "run"
    run(1, "train", of_gpus, "--shards", 2, "--run-folder", folder, gpus="1")
    return folder


def test_sums_on_gpus_are_those_of_one_process():
    """In order to the last bit, for any number of numbers and shards; the norm is one for all."""
    script = Path(__file__).with_name("nccl_sums.py")
    done = finished([MPIEXEC, "-n", "3", sys.executable, str(script)])
    assert done.returncode == 0, done.stderr
    assert done.stdout == "compared\n"


def test_a_run_has_a_shard_for_each_gpu_and_goes_on_with_another_number_of_them(
    of_gpus, one_gpu, tmp_path
):
    """At first each process is shown a GPU of its own; of the three at the end the last rests."""
    folder = tmp_path / "run"
    interrupted(2, "train", of_gpus, "--run-folder", folder, entries=2, gpus="own")
    noted = json.loads((folder / "config.json").read_text())
    assert (noted["recipe"]["training"]["shards"], noted["begun_on"]) == (2, "cuda")
    interrupted(1, "train", "--resume", folder, entries=4, gpus="1")
    _, said = run(3, "train", "--device", "cuda", "--resume", folder, gpus="2,1")
    assert "3 processes on as many GPUs" in said
    assert loaded(folder) == loaded(one_gpu)


def test_another_order_of_the_sums_rounds_otherwise_and_no_more(of_gpus, tmp_path):
    arguments = "train", of_gpus, "--shards", 3, "--epochs", 1, "--run-folder"
    run(1, *arguments, tmp_path / "one", gpus="1")
    run(2, *arguments, tmp_path / "two", "--no-ordered-sums", gpus="2")
    one, two = (loaded(tmp_path / name) for name in ("one", "two"))
    losses, others = ([e["loss"] for e in entries if "loss" in e] for entries, *_ in (one, two))
    assert others == pytest.approx(losses, rel=1e-5)
    assert one[1] != two[1]  # the parameters


def test_a_file_is_translated_as_by_one_process(of_gpus, one_gpu):
    sentences = (of_gpus.parent / "corpus" / "train.source").read_text()
    arguments = "translate", one_gpu, "--beam-size", 1
    alone, _ = run(1, *arguments, input=sentences, gpus="1")
    together, _ = run(2, *arguments, input=sentences, gpus="2")
    assert together == alone
    assert len(alone.splitlines()) == len(sentences.splitlines())


def test_a_nan_on_one_gpu_stops_all(of_gpus, tmp_path):
    arguments = "train", of_gpus, "--log-every", 1, "--run-folder", tmp_path / "run"
    _, said = run(2, *arguments, trouble="nan:1", status=1, gpus="2")
    assert said.count("the norm of its gradient nan, at step 3") == 1


# Which GPU, and what is refused


def info(processes, gpus):
    """What info prints, by name."""
    return dict(line.split(": ", 1) for line in run(processes, "info", gpus=gpus)[0].splitlines())


def test_info_tells_the_gpu_of_each_process():
    told = info(3, "2,1")
    theirs = "rank 0 has cuda:0 of node0, 1 has cuda:1 of node0, 2 has cuda:0 of node1"
    assert told["GPU"] == f"cuda:0, CuPy 14.2.0, NCCL 2.25.1; {theirs}"


class Told:
    """One of several processes, as each hears of all GPUs that are seen."""

    def __init__(self, rank, seen):
        self.rank, self.count, self.seen = rank, len(seen), seen

    def gathered(self, mine):
        return self.seen if type(mine[0]) is tuple else mine * self.count


TWO_AND_ONE = [("node0", ["a", "b"])] * 2 + [("node1", ["a"])]
OWN = [("node0", [address]) for address in "abc"]


@pytest.mark.parametrize(
    ("seen", "devices"),
    [(TWO_AND_ONE, [0, 1, 0]), (OWN, [0] * 3)],
    ids=["two machines", "each is shown another one"],
)
def test_each_process_of_a_machine_has_a_gpu_of_its_own(seen, devices, monkeypatch):
    monkeypatch.setattr("minitransformer.parallel.gpus.visible_gpus", list)
    monkeypatch.setattr("minitransformer.parallel.gpus.select_device", str)
    for name in ("auto", "cuda"):
        chosen = [own_device(name, Told(rank, seen)) for rank in range(3)]
        assert chosen == [f"cuda:{index}" for index in devices]


@pytest.mark.parametrize(("seen", "device", "problem"), [
    ([("node0", ["a", "b"])] * 3, "auto", "3 processes on node0 see 2 GPUs, and each needs "),
    ([("node0", ["a"])] + [("node1", ["b"])] * 2, "cuda", "2 processes on node1 see 1 GPU, "),
    (TWO_AND_ONE, "cuda:1", "'cuda:1' is one GPU, and each of 3 processes needs its own: "),
])  # fmt: skip
def test_gpus_that_are_too_few_are_refused(seen, device, problem, monkeypatch):
    monkeypatch.setattr("minitransformer.parallel.gpus.visible_gpus", list)
    for rank in range(3):
        with pytest.raises(DeviceError, match=problem):
            own_device(device, Told(rank, seen))


def test_no_run_is_made_where_gpus_are_too_few(of_gpus, tmp_path):
    _, said = run(2, "train", of_gpus, "--run-folder", tmp_path / "run", status=1, gpus="1")
    assert said.count("2 processes on node0 see 1 GPU, and each needs its own") == 1
    assert not (tmp_path / "run").exists()


def test_where_one_process_has_no_gpu_auto_is_the_cpu_and_cuda_is_refused():
    told = info(2, "1,0")
    assert told["device"] == "cpu"
    assert re.match("none; rank 1 on node1: .* no CUDA device answers", told["GPU"])


def test_where_processes_share_a_gpu_info_says_why_they_have_no_device():
    assert info(2, "1")["device"].startswith("none; 2 processes on node0 see 1 GPU, and each needs")


def test_auto_is_the_cpu_where_a_gpu_is_seen_and_cannot_be_used(monkeypatch):
    def broken(name):
        raise DeviceError("its driver is too old")

    monkeypatch.setattr("minitransformer.parallel.gpus.visible_gpus", lambda: ["0000:01:00.0"])
    monkeypatch.setattr("minitransformer.parallel.gpus.select_device", broken)
    assert own_device("auto", ALONE) == CPU
    with pytest.raises(DeviceError, match=r"^rank 0 on .*: its driver is too old$"):
        own_device("cuda", ALONE)


@pytest.mark.parametrize(("trouble", "problem"), [
    ("no-nccl:*", "several GPUs need NCCL, which CuPy does not find; install it"),
    ("no-nccl:1", "NCCL is not there in rank 1 on node0, and 2.25.1 in rank 0"),
    ("release:1", "NCCL is 2.23.4 in rank 1 on node0, and 2.25.1 in rank 0"),
    ("same-gpu:1", "NCCL does not bring the GPUs of all processes together, NCCL_ERROR_"),
])  # fmt: skip
def test_where_nccl_fails_no_run_is_made(of_gpus, tmp_path, trouble, problem):
    arguments = "train", of_gpus, "--run-folder", tmp_path / "run"
    _, said = run(2, *arguments, trouble=trouble, status=1, gpus="2")
    assert said.count(problem) == 1
    assert not (tmp_path / "run").exists()
