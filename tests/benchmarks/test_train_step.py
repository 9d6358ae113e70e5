"""A step is timed in turn with another that computes the same, and told with its facts."""

import numpy as np
import pytest
import train_step
from _machine import command_line, environment, note_on_kernels
from _process import SideError, SideProcess
from _settings import Settings
from _workload import Workload
from tiny_workload import tiny_workload


@pytest.fixture
def result(ran):
    return ran("train_step").result


@pytest.mark.slow
def test_both_sides_compute_the_same_before_anything_is_timed(result):
    agreement = result["agreement"]
    assert 0 < agreement["float64"]["gradient"] < 1e-11
    assert agreement["float64"]["gradient"] < agreement["float32"]["gradient"] < 1e-4


@pytest.mark.slow
def test_the_ratio_and_each_sides_speed_are_those_of_all_blocks(result):
    blocks, (ours, theirs) = result["ratio_of_blocks"], (result["ours"], result["theirs"])
    assert len(blocks) == 3
    assert min(blocks) <= result["ratio"] <= max(blocks)
    tokens = np.mean([batch.num_tokens for batch in tiny_workload(count=7).batches])
    for side in (ours, theirs):
        assert side["tokens_per_second"] * side["seconds_per_step"] == pytest.approx(tokens)
        assert side["gflops"] * side["seconds_per_step"] == pytest.approx(result["gflop_per_step"])
        assert side["gemm_peak_gflops"] == max(side["gemm_gflops"].values())
        assert side["gemm_peak_share"] == side["gflops"] / side["gemm_peak_gflops"] < 1
        assert side["peak_mb"] > 20
    assert ours["tokens_per_second"] / theirs["tokens_per_second"] == pytest.approx(result["ratio"])
    assert [ours["name"], theirs["name"]] == ["minitransformer", "minitransformer, reference"]


def test_kernels_that_were_forced_are_told():
    assert note_on_kernels({}) == []
    (note,) = note_on_kernels({"OPENBLAS_CORETYPE": "Haswell"})
    assert "OPENBLAS_CORETYPE=Haswell forces" in note


class Answers:
    """A side with the gradients of a tiny workload, one entry of which is ``scale`` times right."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def call(self, method, index, file, dtype):
        gradients = {"a": np.ones(1000), "b": np.full(3, 0.5)}
        gradients["b"][1] *= self.scale
        np.savez(file, **gradients)
        return 5.0


@pytest.mark.parametrize("wrong", [1.0001, 0.0, -1.0, np.nan])
def test_sides_that_do_not_agree_are_not_timed(tmp_path, wrong):
    def compare(scale):
        return train_step.compare(Answers(scale), Answers(), None, "ours", tmp_path, "float64")

    train_step.check({"float64": compare(1.0)})
    with pytest.raises(SystemExit, match="gradient of b"):
        train_step.check({"float64": compare(wrong)})
    with pytest.raises(SystemExit, match=r"in float64 .* 1.0e-03"):
        train_step.check({"float64": {"loss": 1e-3, "gradient": 0.0, "of": "a"}})


def test_nothing_is_timed_before_the_sides_agree(monkeypatch):
    monkeypatch.setattr(train_step, "alternate", None)
    monkeypatch.setitem(train_step.TOLERANCES, "float32", 0.0)
    with pytest.raises(SystemExit, match="in float32"):
        train_step.measure(tiny_workload(count=1), Settings(), against="reference")


class Clock:
    """A side whose blocks of steps are noted, and take as many seconds as told."""

    def __init__(self, name, calls, seconds):
        self.name, self.calls, self.seconds = name, calls, seconds

    def call(self, method, indices):
        self.calls.append((self.name, indices))
        return self.seconds * len(indices)


def test_the_sides_take_turns_on_the_same_batches_after_warming_up():
    calls = []
    ours, theirs = Clock("o", calls, 1), Clock("t", calls, 3)
    seconds = train_step.alternate(ours, theirs, steps=5, block=2, warm_up=3)
    blocks = [0, 1], [2, 3], [4]
    assert calls[:2] == [("o", [0, 1, 2]), ("t", [0, 1, 2])]
    assert calls[2::2] == [("o", blocks[0]), ("t", blocks[1]), ("o", blocks[2])]
    assert calls[3::2] == [("t", blocks[0]), ("o", blocks[1]), ("t", blocks[2])]
    assert seconds == [[2, 6], [2, 6], [1, 3]]


def test_a_workload_is_the_same_after_it_was_stored(tmp_path):
    workload = tiny_workload()
    workload.save(tmp_path)
    loaded = Workload.load(tmp_path)
    assert vars(loaded.config) == vars(workload.config)
    assert (loaded.corpus, loaded.padding) == (workload.corpus, workload.padding)
    assert loaded.weights.keys() == workload.weights.keys()
    for path, weight in workload.weights.items():
        np.testing.assert_array_equal(loaded.weights[path], weight)
    for ours, theirs in zip(workload.batches, loaded.batches, strict=True):
        assert ours.num_tokens == theirs.num_tokens
        for side in ("source", "target", "labels"):
            np.testing.assert_array_equal(getattr(ours, side), getattr(theirs, side))


def test_what_goes_wrong_in_a_process_is_told(tmp_path):
    tiny_workload(count=1).save(tmp_path)
    with (
        SideProcess("ours", tmp_path, Settings()) as side,
        pytest.raises(SideError, match="IndexError"),
    ):
        side.call("take_steps", indices=[7])
    with pytest.raises(SideError, match=r"^unknown device 'gpu'; choose"):  # no traceback
        SideProcess("ours", tmp_path, Settings(device="gpu"))
    (tmp_path / "weights.npz").unlink()
    with pytest.raises(SideError, match=r"weights\.npz"):
        SideProcess("ours", tmp_path, Settings())


def test_tf32_is_refused_on_a_cpu():
    with pytest.raises(ValueError, match="choose float32"):
        Settings(precision="tf32")


def test_no_folder_of_this_machine_stays_in_a_command(monkeypatch):
    for name in environment():
        monkeypatch.delenv(name)
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    given = ["x.py", "--data-dir", "../data", "--steps", "3", "--json", "/a/b.json"]
    shown = "x.py --data-dir DIR --steps 3 --json b.json"
    assert command_line(given) == f"OPENBLAS_CORETYPE=Haswell python benchmarks/{shown}"
    monkeypatch.setenv("CUPY_CACHE_DIR", "/a/kernels")
    assert command_line(given).startswith("CUPY_CACHE_DIR=kernels ")
    said = command_line(["x.py", "--data-dir=/a/data", "--json=/a/b.json"])
    assert said.endswith("x.py --data-dir=DIR --json=b.json")
    assert "/a" not in said
