"""What a run gives does not depend on how its shards are spread over processes and threads."""

import json

import normed
import pytest
from job import counting
from jobs import finished, interrupted, loaded, run, saved, words, written
from tiny_run import trained
from tiny_tasks import recipe_of_kind

from minitransformer.core.workers import available_cores
from minitransformer.models.registry import KINDS
from minitransformer.tasks.language_modelling import LanguageModelling
from minitransformer.training.recipe import Recipe


def test_two_machines_give_what_one_gives(recipe, tmp_path):
    """Two names of this machine are two machines to MPICH, each with processes of its own.

    Of the three the last has no shard.
    """
    (tmp_path / "hosts").write_text("localhost:1\n127.0.0.1:2\n")
    trained(Recipe.load(recipe).with_value("shards", 2), tmp_path / "one")
    arguments = "train", recipe, "--shards", 2, "--run-folder", tmp_path / "two"
    mpiexec, *rest = words(3, arguments)
    done = finished([mpiexec, "-f", tmp_path / "hosts", *rest])
    assert done.returncode == 0, done.stderr
    assert f"3 processes on {2 * available_cores()} cores" in done.stderr
    assert loaded(tmp_path / "two") == loaded(tmp_path / "one")


def test_a_language_model_has_the_same_bits_too(tmp_path, monkeypatch):
    """And processes share the batches that validate: together they have as many as one has."""
    recipe = written(tmp_path, kind="language-model", num_layers=1, subword_dropout=0.0)
    counts = [tmp_path / f"batches-{processes}" for processes in (1, 2)]
    run(2, "train", recipe, "--run-folder", tmp_path / "2", trouble=f"count:{counts[1]}")
    monkeypatch.setattr(LanguageModelling, "validate", counting(counts[0]))
    trained(Recipe.load(recipe), tmp_path / "1")
    assert loaded(tmp_path / "2") == loaded(tmp_path / "1")
    assert counts[0].stat().st_size == counts[1].stat().st_size > 0


@pytest.mark.parametrize(("kind", "count"), [(normed.KIND, 3), ("residual-network", 14)])
def test_buffers_have_the_same_bits_too(kind, count, tmp_path, monkeypatch):
    """Those of batch norms: each process sees some shards, and all merge those of all."""
    monkeypatch.setitem(KINDS, normed.KIND, normed.PLACE)
    recipe = saved(recipe_of_kind(kind, tmp_path / "corpus", shards=4), tmp_path)
    trained(Recipe.load(recipe), tmp_path / "1")
    run(2, "train", recipe, "--run-folder", tmp_path / "2", trouble="normed:*")
    one, two = (loaded(tmp_path / name) for name in "12")
    assert two == one
    assert len([name for name in one[1] if name.startswith("buffers/")]) == count


def test_the_first_process_decides_which_epoch_is_the_best_and_when_all_stop(tmp_path):
    """All epochs tie, and in the second process each is better than those before."""
    sizes = dict(kind="masked-language-model", num_layers=1, subword_dropout=0.0)
    recipe = written(tmp_path, **sizes, peak_learning_rate=1e-30, epochs=5, patience=1)
    trained(Recipe.load(recipe), tmp_path / "1")
    run(2, "train", recipe, "--run-folder", tmp_path / "2", trouble="round:1")
    assert loaded(tmp_path / "2") == loaded(tmp_path / "1")
    assert loaded(tmp_path / "1")[0][-1]["epoch"] == 2


def test_another_order_of_the_sums_rounds_otherwise_and_no_more(recipe, whole, tmp_path):
    run(2, "train", recipe, "--no-ordered-sums", "--run-folder", tmp_path / "run")
    of_runs = [loaded(folder)[0] for folder in (tmp_path / "run", whole)]
    here, there = ([e["loss"] for e in entries if "loss" in e] for entries in of_runs)
    assert here == pytest.approx(there, rel=1e-5)
    assert here != there


def test_a_run_goes_on_with_another_number_of_processes(recipe, whole, tmp_path):
    """Two processes begin, one goes on, and three come to the end, each cut off by Ctrl-C.

    Two have two shards each, and three have two, one and one, each of them two threads. Losses,
    norms, scores and parameters are to the bit those of one process and one thread.
    """
    folder = tmp_path / "run"
    interrupted(2, "train", recipe, "--run-folder", folder, entries=3)
    interrupted(1, "train", "--resume", folder, entries=7)
    run(3, "train", "--resume", folder, threads=2)
    assert loaded(folder) == loaded(whole)


def test_a_run_notes_a_shard_for_each_core_of_all_processes(recipe, tmp_path):
    folder = tmp_path / "run"
    _, said = run(2, "train", recipe, "--shards", 0, "--batch-tokens", 4096, "--run-folder", folder)
    cores = int(said.split("2 processes on ")[1].split()[0])
    noted = json.loads((folder / "config.json").read_text())["recipe"]["training"]["shards"]
    assert noted == min(cores, 8)
