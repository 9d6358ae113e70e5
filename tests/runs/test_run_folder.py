import json

import numpy as np
import pytest
from full_disk import full_disk
from memory import traced
from run_files import contents

from minitransformer import Transformer
from minitransformer.cases.models import small_config
from minitransformer.commands.plot import draw
from minitransformer.inference.trained_on_text import OF_TEXT
from minitransformer.models.language_model import LanguageModel, LanguageModelConfig
from minitransformer.runs.checkpoint.arrays import model_arrays
from minitransformer.runs.checkpoint.file import (
    VERSION,
    NewerFormatError,
    RunError,
    load_checkpoint,
)
from minitransformer.runs.checkpoint.folder import checkpoints
from minitransformer.runs.run_folder import RunFolder

TRAIN = [{"kind": "train", "step": step, "epoch": (step - 1) // 2} for step in (1, 2, 3, 4)]
VALIDATION = [
    {"kind": "validation", "step": 2 * epoch, "epoch": epoch, "bleu": 9.5} for epoch in (1, 2)
]
LOG = [*TRAIN[:2], VALIDATION[0], *TRAIN[2:], VALIDATION[1]]


@pytest.fixture
def run(tmp_path):
    run = RunFolder(tmp_path / "runs" / "one", OF_TEXT)
    run.create()
    return run


@pytest.fixture
def logged(run):
    for entry in LOG:
        run.log.append(entry)
    return run


def saved_to(run, numbers):
    """As trainings do that need the second epoch."""
    model = Transformer(small_config())
    run.create()
    for number in numbers:
        run.save_checkpoint(model_arrays(model), {"step": number})
        run.save_epoch(model, number)
        run.prune_epochs([2, number])


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_configuration_comes_back(run):
    config, recipe = small_config(), {"training": {"epochs": 3, "peak_learning_rate": 1e-3}}
    run.save_config(config, recipe)
    assert run.load_config() == (config, recipe)


def test_the_command_that_resumes_asks_for_what_the_run_was_begun_with(run):
    plain = f"minitransformer train --resume {run.path}"
    assert run.resume_command() == plain
    run.save_config(small_config(), {}, processes=3, anyway=True)
    assert run.resume_command() == f"mpiexec -n 3 {plain}"
    assert run.resume_command(1) == plain
    run.own.touch()
    assert run.resume_command() == f"mpiexec -n 3 {plain} --own {run.own} --anyway"
    run.save_config(small_config(), {}, processes="4; rm -r .", anyway="no")
    assert run.resume_command() == f"{plain} --own {run.own}"


@pytest.mark.parametrize(("name", "write"), [
    ("config.json", lambda run: run.save_config(small_config(), {"new": 1})),
    ("own.py", lambda run: run.keep(own=b"pass")),
    ("metrics.jsonl", lambda run: run.log.forget_after(1, 0)),
    ("metrics.jsonl", lambda run: run.log.append(TRAIN[0])),
    ("loss.png", lambda run: draw(run)),
    ("before-1/config.json", lambda run: run.set_aside()),
])  # fmt: skip
def test_a_write_that_fails_leaves_the_file_as_it_was_and_names_it(logged, name, write):
    logged.save_config(small_config(), {"old": 1})
    put(logged.attached["vocabulary"])
    before = contents(logged.path)
    with full_disk(), pytest.raises(OSError, match="File too large") as raised:
        write(logged)
    assert raised.value.filename == str(logged.path / name)
    assert contents(logged.path) == before


def test_there_is_no_log_before_the_first_entry_that_json_has_words_for(run):
    run.log.forget_after(0, 0)
    assert not run.log.path.exists()
    with pytest.raises(ValueError, match="JSON"):
        run.log.append({"kind": "train", "loss": float("nan")})
    assert run.log.entries() == []


def test_the_log_is_one_json_line_an_entry(logged):
    assert [json.loads(line) for line in logged.log.path.read_text().splitlines()] == LOG
    assert logged.log.entries() == LOG


def test_a_last_line_cut_short_is_left_out_and_then_forgotten(logged):
    with logged.log.path.open("a") as file:
        file.write('{"kind": "train", "st')
    assert logged.log.entries() == LOG
    logged.log.forget_after(4, 2)
    logged.log.append(TRAIN[0])
    assert logged.log.entries() == [*LOG, TRAIN[0]]


@pytest.mark.parametrize(("missing", "begins"), [(1, 2), (3, 3), (5, 4)])
def test_a_log_that_has_lost_its_beginning_says_so_whoever_reads_it(logged, missing, begins):
    lines = logged.log.path.read_bytes().splitlines(keepends=True)
    logged.log.path.write_bytes(b"".join(lines[missing:]))
    logged.save_config(small_config(), {})
    for read in (logged.log.entries, lambda: logged.log.forget_after(4, 2), lambda: draw(logged)):
        words = rf"metrics\.jsonl has lost its beginning: its first entry is of step {begins}\."
        with pytest.warns(UserWarning, match=words):
            read()
    assert logged.log.path.read_bytes() == b"".join(lines[missing:])


@pytest.mark.parametrize(("step", "epoch", "kept"), [
    (0, 0, 0), (1, 0, 1), (2, 0, 2), (2, 1, 3), (3, 1, 4), (4, 1, 5), (4, 2, 6),
])  # fmt: skip
def test_what_a_resumed_run_will_log_again_is_forgotten(logged, step, epoch, kept):
    """After step 2 with no epoch done, the run validates again; with one done, it does not."""
    logged.log.forget_after(step, epoch)
    assert logged.log.entries() == LOG[:kept]


def test_parameters_of_epochs_are_kept_if_they_are_still_needed(run):
    model = Transformer(small_config())
    for epoch, keep in [(1, [1]), (2, [1, 2]), (3, [3, 2, 1]), (10, [10, 3, 1])]:
        run.save_epoch(model, epoch)
        run.prune_epochs(keep)
    assert names(run.epochs) == ["epoch-0001.npz", "epoch-0003.npz", "epoch-0010.npz"]
    assert run.epoch_files() == [run.epoch_file(epoch) for epoch in (1, 3, 10)]
    arrays, state = load_checkpoint(run.epoch_file(10))
    assert state == {"epoch": 10}
    assert arrays.keys() == model_arrays(model).keys()


def test_the_chosen_parameters_are_loaded_and_before_those_of_the_newest_checkpoint(run):
    run.save_config(small_config(), {})
    first, second = (model_arrays(Transformer(small_config(), seed=seed)) for seed in (0, 1))
    with pytest.raises(RunError, match=r"has no model\.npz and no whole checkpoint yet"):
        run.load_parameters()
    run.save_checkpoint(first, {"step": 5})
    for expected, arrays in (("step-00000005", first), ("epoch 3", second)):
        loaded, origin = run.load_parameters()
        assert origin == expected
        for name in arrays:
            np.testing.assert_array_equal(loaded[name], arrays[name])
        run.save_model(second, "epoch 3", bleu=41.5)


def test_a_choice_of_a_newer_release_is_not_to_be_made_again(run, monkeypatch):
    run.save_config(small_config(), {})
    with monkeypatch.context() as newer:
        newer.setattr("minitransformer.runs.checkpoint.file.VERSION", VERSION + 1)
        run.save_model({}, "epoch 3", bleu=41.5)
    with pytest.raises(NewerFormatError, match=r"upgrade minitransformer$"):
        run.load_chosen()


def test_a_choice_is_of_another_run_though_no_checkpoint_is_left(tmp_path):
    run = RunFolder(tmp_path)
    run.save_config(small_config(), {})
    run.bind({"seed": 1}, {})
    run.save_model({}, "epoch 3", bleu=41.5)
    run.require_bound()
    run.bind({"seed": 2}, {})
    with pytest.raises(RunError, match=r"says seed 2, .* with 1 \(says model\.npz\)"):
        run.require_bound()


def test_a_model_that_is_loaded_is_in_memory_once(run):
    """Beside its gradients; but for the largest of its arrays, while it is put in its place."""
    config = LanguageModelConfig(1000, 256, d_ff=1024, num_layers=6)
    run.save_config(config, {})
    run.save_model(model_arrays(LanguageModel(config, seed=None)), "epoch 1", nll=1.0)
    with traced() as memory:
        run.load_trained("cpu")
    once = 4 * config.num_parameters()
    assert 2 * once < memory.peak < 2.4 * once


def test_what_a_killed_process_left_half_written_is_removed(logged):
    files = "model.npz", "config.json", "epochs/epoch-0001.npz", "checkpoints/step-00000001.npz"
    leftovers = [logged.path / f"{name}.123.tmp" for name in files]
    for path in leftovers:
        path.write_bytes(b"half")
    logged.create()
    assert not any(path.exists() for path in leftovers)
    assert logged.log.entries() == LOG


# What else is in the folder


def put(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"the user's")


@pytest.mark.parametrize("name", [
    "notes.txt", ".hidden", "model.npz", "metrics.jsonl", "checkpoints/step-00000010.npz",
    "epochs/epoch-0001.npz", "epochs/mine/thesis.tex", "vocabulary.model/folder",
    "config.json.1.tmp/folder",
])  # fmt: skip
def test_a_folder_that_is_neither_empty_nor_a_run_is_refused(tmp_path, name):
    put(tmp_path / "run" / name)
    says = f"nor a run: it holds {name.partition('/')[0]}, and no .* put its config.json back"
    with pytest.raises(RunError, match=says):
        RunFolder(tmp_path / "run").require_free()


def test_five_strangers_are_named_and_of_more_it_is_said_that_there_are(tmp_path):
    for count in (5, 6):
        for name in "abcdef"[:count]:
            (tmp_path / name).touch()
        held = "a, b, c, d, e" + ", …" * (count > 5)
        with pytest.raises(RunError, match=f"it holds {held}, and no config"):
            RunFolder(tmp_path).require_free()


def test_a_new_run_begins_where_nothing_is_but_what_one_left_that_was_killed(run, tmp_path):
    """Before it was a run."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk", target_is_directory=True)
    for path in (tmp_path / "disk", tmp_path / "not" / "yet", tmp_path / "link"):
        RunFolder(path).require_free()
    leftovers = ["vocabulary.model.1.tmp", "config.json.1.tmp"]
    for name in ("training.lock", "vocabulary.model", *leftovers):
        put(run.path / name)
    run.require_free()


def test_a_run_that_begins_meanwhile_is_no_strangers_folder(run, monkeypatch):
    """Then the lock says whose it is, or that it is a run."""

    def seen_before_it_begins(run):
        put(run.path / "metrics.jsonl")
        return False

    monkeypatch.setattr(RunFolder, "exists", seen_before_it_begins)
    run.require_free()


@pytest.mark.parametrize(("name", "given", "option"), [
    ("own.py", "own", "--own"), ("beginning.npz", "beginning", "--from"),
])  # fmt: skip
def test_what_a_resumed_run_would_take_for_its_own_is_refused(run, name, given, option):
    put(run.path / name)
    run.require_free(**{given: "one of its own"})
    words = f"{name} is there already, and a run begun without {option} would take it for its own"
    with pytest.raises(RunError, match=words):
        run.require_free()


LIKE_OURS = {
    "": ["notes.tmp", "config.json.1.tmp.bak", "model.npz.old.tmp", "loss.png.tmp"],
    "checkpoints": [*(f"step-{rest}" for rest in (
        "1.npz", "000000001.npz", "00000001.npz.bak", "best.npz", "00000001.npz.tmp",
        "00000001 copy.npz", "00000001.npz.1.tmp.gz")), "all.tmp"],
    "epochs": [f"epoch-{rest}" for rest in (
        "best.npz", "1.npz", "00001.npz", "0001 copy.npz", "9999.npz", "0001.npz.bak",
        "0001.npz.tmp", "0000.npz")],
}  # fmt: skip


def test_nothing_of_the_users_is_removed_however_much_its_name_looks_like_ours(run):
    users = [run.path / folder / name for folder, names in LIKE_OURS.items() for name in names]
    for path in users:
        put(path)
    saved_to(run, (1, 2, 3, 4))
    assert all(path.read_bytes() == b"the user's" for path in users)
    ours = {"step-00000003.npz", "step-00000004.npz"}
    assert set(names(run.checkpoints)) - ours == set(LIKE_OURS["checkpoints"])
    assert set(names(run.epochs)) - {"epoch-0002.npz", "epoch-0004.npz"} == set(LIKE_OURS["epochs"])


def test_a_folder_with_a_name_that_is_ours_stays_and_stops_nothing(run):
    names = ["config.json.123.tmp", "notes.tmp"]
    names += [f"checkpoints/step-{rest}" for rest in ("00000001.npz", "99999999.npz")]
    names += ["checkpoints/step-00000001.npz.1.tmp"]
    names += ["epochs/epoch-0001.npz", "epochs/epoch-0001.npz.1.tmp"]
    for name in names:
        put(run.path / name / "inside")
    saved_to(run, (2, 3, 4))
    assert all((run.path / name / "inside").exists() for name in names)
    assert run.load_newest_checkpoint()[1] == {"step": 4}
    kept = [path.name for path in checkpoints(run.checkpoints)]
    assert kept == ["step-00000003.npz", "step-00000004.npz"]
