import errno
import io
import json
import os
import random
import subprocess
import sys
import time
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from full_disk import full_disk
from memory import takes_at_most
from strict_cupy import strict

from minitransformer import Transformer
from minitransformer.cases.models import small_config
from minitransformer.core.backend import to_host
from minitransformer.runs import checkpoint
from minitransformer.runs.checkpoint.arrays import average, load_model_arrays, model_arrays
from minitransformer.runs.checkpoint.file import (
    CheckpointError,
    NewerFormatError,
    load_checkpoint,
    open_checkpoint,
    save_checkpoint,
)
from minitransformer.runs.checkpoint.folder import (
    checkpoint_path,
    checkpoints,
    newest_checkpoint,
    prune,
)

ARRAYS = {
    "parameters/layers.0.weight": np.arange(6, dtype=np.float32).reshape(3, 2).T / 7,
    "parameters/gewöhnlich.β": np.float64([np.nan, -0.0, np.inf, 5e-324]),
    "data/order": np.int64([3, 0, 1, 0, 2])[::2],
    "data/flags": np.array([[True], [False]]),
    "data/scalar": np.array(7, np.uint32),
    "data/empty": np.zeros((0, 4), np.float16),
}
STATE = {
    "step": 1234,
    "best": [["bleu", 41.0000000000000001], ["none", None]],
    "generator": np.random.default_rng(5).bit_generator.state,
    "sentence": "Zwei Männer\n",
}


@pytest.fixture
def saved(tmp_path):
    path = checkpoint_path(tmp_path, 1)
    save_checkpoint(path, ARRAYS, STATE)
    return path


def fingerprint(arrays, state):
    """Equal for equal content to the last bit, of NaNs and negative zeros too."""
    rows = [(name, a.dtype.str, a.shape, a.tobytes()) for name, a in arrays.items()]
    return rows, json.dumps(state)


def save_steps(folder, steps):
    """Small checkpoints whose parameter is their step."""
    for step in steps:
        arrays = {"parameters/w": np.full(3, step, np.float32)}
        save_checkpoint(checkpoint_path(folder, step), arrays, {"step": step})
    return {step: checkpoint_path(folder, step) for step in steps}


def small_model(seed=0, **options):
    return Transformer(small_config(), seed=seed, **options)


# What is saved comes back


def test_arrays_and_state_come_back_to_the_last_bit_and_arrays_can_be_written_to(saved):
    """Those, too, that were transposed, or every second number of another."""
    arrays, state = load_checkpoint(saved)
    assert fingerprint(arrays, state) == fingerprint(ARRAYS, STATE)
    for array in arrays.values():
        array[...] = 0


def test_arrays_can_be_described_first_and_read_one_by_one(saved):
    arrays, state = open_checkpoint(saved)
    whole, _ = load_checkpoint(saved)
    for name, array in arrays.items():
        assert (array.shape, array.dtype, array.size) == (
            *(whole[name].shape, whole[name].dtype),
            whole[name].size,
        )
    assert fingerprint({name: np.asarray(a) for name, a in arrays.items()}, state) == fingerprint(
        ARRAYS, STATE
    )
    assert np.asarray(arrays["data/order"], np.float32).dtype == np.float32


def test_a_description_that_lies_takes_no_memory(saved):
    """As the one who describes an array is asked before it is read."""
    described = json.loads(unpacked(saved)["checkpoint.json"])["arrays"]
    described["data/order"]["shape"] = [10**12]
    rewritten(saved, arrays=described)
    with pytest.raises(CheckpointError, match="data/order is not as its list says"):
        open_checkpoint(saved)


def test_a_file_that_is_replaced_meanwhile_is_refused(saved):
    arrays, _ = open_checkpoint(saved)
    save_checkpoint(saved, ARRAYS, STATE)
    with pytest.raises(CheckpointError, match="it was replaced while it was read"):
        np.asarray(arrays["data/order"])


def test_anyone_with_numpy_can_read_it(saved):
    with np.load(saved) as file:
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(file[name], array)
        assert json.loads(file["checkpoint.json"])["state"] == STATE


def test_the_same_content_is_the_same_file(saved, tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 2e9)
    save_checkpoint(tmp_path / "again.npz", ARRAYS, STATE)
    assert (tmp_path / "again.npz").read_bytes() == saved.read_bytes()


def test_a_newer_save_replaces_the_file(saved, tmp_path):
    save_checkpoint(saved, {}, {"step": 2})
    assert load_checkpoint(saved) == ({}, {"step": 2})
    assert list(tmp_path.iterdir()) == [saved]


@pytest.mark.parametrize("state", [
    {"a": (1, 2)}, {"a": {1: 2}}, {1: None}, {"a": np.int64(1)}, {"a": np.nan}, {"a": np.inf},
], ids=str)  # fmt: skip
def test_a_state_that_json_would_change_is_refused_before_the_disk_is_touched(state, tmp_path):
    with pytest.raises((TypeError, ValueError), match="JSON"):
        save_checkpoint(tmp_path / "a.npz", {}, state)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("array", "says"), [
    *((array, "w is .*numbers or booleans")
      for array in ([1.0], np.array([{}]), np.array(["x"]), np.zeros(1, "f4,f4"))),
    (strict.asarray(np.zeros(2)), "w is a StrictArray of float64.*to_host"),
])  # fmt: skip
def test_only_arrays_of_numbers_on_the_host_are_saved(array, says, tmp_path):
    with pytest.raises(TypeError, match=says):
        save_checkpoint(tmp_path / "a.npz", {"w": array}, {})
    assert list(tmp_path.iterdir()) == []


# Failed and killed writers


def test_wherever_the_disk_is_full_the_earlier_checkpoint_stays_and_nothing_else(saved, tmp_path):
    """Also in the middle of a write."""
    before, size = saved.read_bytes(), saved.stat().st_size
    takes = sum(array.nbytes for array in ARRAYS.values())
    told = (
        rf"01\.npz could not be written: File too large; .* It takes about {takes} bytes: make room"
    )
    for room in [*range(0, size, 97), size - 1]:
        with full_disk(room), pytest.raises(CheckpointError, match=told):
            save_checkpoint(saved, ARRAYS, STATE | {"step": 1235})
        assert saved.read_bytes() == before
        assert list(tmp_path.iterdir()) == [saved]


@pytest.mark.parametrize("function", ["fsync", "replace"])
@pytest.mark.parametrize(("failure", "told"), [
    (OSError(errno.ENOSPC, "No space left"), CheckpointError),
    (KeyboardInterrupt(), KeyboardInterrupt),
], ids=["full disk", "Ctrl-C"])  # fmt: skip
def test_a_failure_at_the_end_leaves_the_earlier(function, failure, told, saved, monkeypatch):
    def fail(*args):
        raise failure

    before = saved.read_bytes()
    monkeypatch.setattr(os, function, fail)
    with pytest.raises(told):
        save_checkpoint(saved, {}, {})
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"gone.*No such file.* before is untouched$"):
        save_checkpoint(tmp_path / "gone" / "a.npz", {}, {})


def test_what_it_takes_is_said_in_millions_of_bytes(tmp_path):
    w = np.zeros(1_500_000, np.uint8)
    with full_disk(99), pytest.raises(CheckpointError, match=r"It takes about 1\.5 MB: make room"):
        save_checkpoint(tmp_path / "a.npz", {"w": w}, {})


def test_the_file_is_flushed_before_its_name_and_its_name_before_the_return(tmp_path, monkeypatch):
    """No killed process shows this; a power cut would."""
    events = []
    fsync, replace = os.fsync, os.replace

    def logged_fsync(descriptor):
        place = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        events.append(("flush", place.suffix, place.stat().st_size if place.is_file() else None))
        fsync(descriptor)

    def logged_replace(source, target):
        events.append(("rename", Path(target).suffix))
        replace(source, target)

    if not Path("/proc/self/fd").exists():
        pytest.skip("asks /proc which file a descriptor belongs to")
    monkeypatch.setattr(os, "fsync", logged_fsync)
    monkeypatch.setattr(os, "replace", logged_replace)
    save_checkpoint(tmp_path / "a.npz", ARRAYS, STATE)
    size = (tmp_path / "a.npz").stat().st_size
    assert events == [("flush", ".tmp", size), ("rename", ".npz"), ("flush", "", None)]


SAVE_FOR_EVER = """
import itertools, sys
import numpy as np
from minitransformer.runs.checkpoint.file import save_checkpoint
from minitransformer.runs.checkpoint.folder import checkpoint_path, prune

for step in itertools.count(1):
    arrays = {f"w{i}": np.full(100_000, step, np.float32) for i in range(5)}
    print(f"saving {step}", flush=True)
    save_checkpoint(checkpoint_path(sys.argv[1], step), arrays, {"step": step})
    print(f"saved {step}", flush=True)
    prune(sys.argv[1], [])
"""


def kill_while_saving(folder, moment):
    """Kill a writer ``moment`` of the time that a save takes into its third; return its words."""
    command = [sys.executable, "-c", SAVE_FOR_EVER, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        read = process.stdout.readline
        lines = [read(), read(), read()]
        began = time.monotonic()
        lines += [read()]
        duration = time.monotonic() - began
        lines += [read()]
        time.sleep(moment * duration)
        process.kill()
        return lines + process.stdout.readlines()


def test_a_writer_killed_at_any_moment_leaves_only_whole_checkpoints(tmp_path):
    moments = random.Random(0)
    leftovers = 0
    for kill in range(50):
        if kill >= 12 and leftovers:  # enough, and some in the middle of writing
            break
        folder = tmp_path / str(kill)
        folder.mkdir()
        lines = kill_while_saving(folder, moments.uniform(0, 1.2))
        for path in checkpoints(folder):
            arrays, state = load_checkpoint(path)
            assert path == checkpoint_path(folder, state["step"])
            assert len(arrays) == 5
            assert all((array == state["step"]).all() for array in arrays.values())
        last_told = max(int(line.split()[1]) for line in lines if line.startswith("saved"))
        assert last_told >= 2
        assert newest_checkpoint(folder) >= checkpoint_path(folder, last_told)
        leftovers += len(list(folder.glob("*.tmp")))
    assert leftovers > 0


# Damaged files


def assert_refused_or_whole(path, content, original):
    path.unlink()  # some file systems flush a file that is written over, and that takes long
    path.write_bytes(content)
    try:
        loaded = load_checkpoint(path)
    except CheckpointError:
        return
    assert fingerprint(*loaded) == original


def test_a_file_cut_short_anywhere_is_refused(saved):
    for length in reversed(range(saved.stat().st_size)):
        os.truncate(saved, length)
        with pytest.raises(CheckpointError, match=r"001\.npz is no checkpoint, or a damaged one"):
            load_checkpoint(saved)


def test_a_flipped_bit_anywhere_is_refused_or_changes_nothing(saved):
    """A few bytes of a zip file, such as dates, say nothing that is read."""
    content = saved.read_bytes()
    original = fingerprint(*load_checkpoint(saved))
    bits = random.Random(0)
    for position in range(len(content)):
        flipped = bytearray(content)
        flipped[position] ^= 1 << bits.randrange(8)
        assert_refused_or_whole(saved, flipped, original)


@pytest.mark.parametrize("part", ["array", "end of a large array", "state"])
def test_a_flipped_bit_in_the_numbers_or_the_state_is_refused(part, tmp_path):
    array = np.random.default_rng(0).standard_normal(10 if part == "array" else 300_000)
    save_checkpoint(tmp_path / "a.npz", {"w": array}, STATE)
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[content.index(b"M\\u00e4nner" if part == "state" else array[-9:].tobytes())] ^= 1
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(CheckpointError, match="CRC"):
        load_checkpoint(tmp_path / "a.npz")
    with pytest.raises(CheckpointError, match="CRC"):
        np.asarray(open_checkpoint(tmp_path / "a.npz")[0]["w"])


def test_overwritten_zeroed_and_repeated_stretches_are_refused_or_change_nothing(saved):
    content = saved.read_bytes()
    original = fingerprint(*load_checkpoint(saved))
    places = random.Random(0)
    for _ in range(300):
        start = places.randrange(len(content))
        stop = start + places.choice([1, 4, 64, 512])
        for stretch in (bytes(stop - start), places.randbytes(stop - start), content[:99], b""):
            assert_refused_or_whole(saved, content[:start] + stretch + content[stop:], original)


# Files that are something else


def unpacked(path):
    """The members of a zip file as bytes by name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def rewritten(path, **changes):
    """The checkpoint with other entries in checkpoint.json."""
    members = unpacked(path)
    manifest = json.loads(members["checkpoint.json"]) | changes
    packed(path, members | {"checkpoint.json": json.dumps(manifest)})


def npy(array_or_header, data=b""):
    file = io.BytesIO()
    if isinstance(array_or_header, dict):
        np.lib.format.write_array_header_1_0(file, array_or_header)
        file.write(data)
    else:
        np.lib.format.write_array(file, array_or_header)
    return file.getvalue()


def listing(**described):
    """The content of checkpoint.json, with arrays of such types and shapes."""
    return json.dumps(dict(format=checkpoint.file.FORMAT, version=1, state={}, arrays=described))


def forged(content, described, compression=zipfile.ZIP_STORED):
    """One array of these bytes, and a list that agrees with them."""

    def write(path):
        packed(path, {"checkpoint.json": listing(w=described), "w.npy": content}, compression)

    return write


def of_type(dtype):
    array = np.zeros(2, dtype)
    return forged(npy(array), {"dtype": array.dtype.str, "shape": [2]})


def of_shape(descr, shape):
    """Eight bytes that are said to be of another number."""
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    return forged(npy(header, bytes(8)), {"dtype": descr, "shape": list(shape)})


def written(content):
    return lambda path: path.write_bytes(content)


def manifest(text):
    return lambda path: packed(path, unpacked(path) | {"checkpoint.json": text})


def renamed(name, array=None):
    """An array in place of data/order, under this name."""

    def write(path):
        members = unpacked(path)
        order = members.pop("data/order.npy")
        if name:
            members[f"data/{name}.npy"] = order if array is None else npy(array)
        packed(path, members)

    return write


def one_more(name):
    def write(path):
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(f"data/{name}.npy", npy(np.int64([1, 2, 3])))

    return write


def newer(path):
    """As a release may write it that has changed everything else."""
    described = json.dumps({"format": checkpoint.file.FORMAT, "version": 2})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("checkpoint.json", described)
        archive.writestr("tensors.bin", bytes(99), zipfile.ZIP_DEFLATED)


def lying(compression):
    """The directory says that the array is small when unpacked, or large while packed."""

    def write(path):
        content, told = npy(np.zeros(10_000_000, np.uint8)), 8000
        listed = listing(w={"dtype": "|u1", "shape": [told]})
        with zipfile.ZipFile(path, "w", compression) as archive:
            archive.writestr("checkpoint.json", listed, zipfile.ZIP_STORED)
            if compression == zipfile.ZIP_DEFLATED:
                archive.writestr("w.npy", content)
                archive.getinfo("w.npy").file_size = told
            else:
                archive.writestr("w.npy", content[:told])
                archive.getinfo("w.npy").compress_size = len(content)

    return write


def bomb_of_an_array(path):
    zeros = np.zeros(10**7, np.uint8)
    forged(npy(zeros), {"dtype": "|u1", "shape": [len(zeros)]}, zipfile.ZIP_DEFLATED)(path)
    assert path.stat().st_size < 50_000


def bomb_of_a_list(path):
    state = json.dumps({"format": checkpoint.file.FORMAT, "version": 1, "state": " " * 10**7})
    packed(path, {"checkpoint.json": state}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 50_000


LONG_HEADER = b"\x93NUMPY\x01\x00" + (9991).to_bytes(2, "little") + b"-" * 9990 + b"1"
PLAIN, LIST = "only plain numbers", "its list"
NO_CHECKPOINT = r"001\.npz is no checkpoint, or a damaged one: "
FOREIGN = [
    *((written(content), NO_CHECKPOINT) for content in (
        b"", b"PK", b"\x89PNG\r\n\x1a\n" * 99, b"Ein Mann.\n", np.random.default_rng(0).bytes(5000),
    )),
    (lambda path: np.savez(path, w=np.zeros(3)), r"it has no checkpoint\.json"),
    *((partial(rewritten, **entry), NO_CHECKPOINT) for entry in (
        *({"version": version} for version in (0, "2", None)),
        {"format": "somebody else's checkpoint"}, {"arrays": {}}, {"arrays": None}, {"state": [1]},
    )),
    *((manifest(text), NO_CHECKPOINT) for text in (
        "", "[]", "{}", "null", "{", "[" * 100_000, b"\xff", "1" * 9999,
    )),
    (partial(rewritten, version=2), r"001\.npz has version 2 .* version 1; upgrade"),
    (newer, r"001\.npz has version 2 .* version 1; upgrade"),
    (renamed(None), LIST), (renamed("other"), LIST), (renamed("order", np.int32([3, 1, 2])), LIST),
    (one_more("more"), LIST), (one_more("order"), LIST),  # two of one name
    *((of_type(dtype), PLAIN) for dtype in ("<U4", "<M8[s]", [("a", "<f4")], "|S4", "<c8")),
    *((of_shape(*header), NO_CHECKPOINT) for header in (
        ("<f4", (10**6, 10**6)), ("<f4", (10**18, 10**18)), ("<f4", (3,)), ("<f4", (1,)),
        ("<f4", (-1,)), ("<f4", (-2, -1)), ("<f4", (0, 10**30)), ("<f8", (2,)),
    )),
    (forged(npy(np.zeros((2, 3)).T), {"dtype": "<f8", "shape": [3, 2]}), PLAIN),  # another order
    (forged(npy(np.zeros(2)).replace(b"NUMPY\x01", b"NUMPY\x04"), {"dtype": "<f8", "shape": [2]}),
     r"w\.npy has version \(4, 0\)"),
    (lying(zipfile.ZIP_STORED), NO_CHECKPOINT), (lying(zipfile.ZIP_DEFLATED), NO_CHECKPOINT),
    (bomb_of_a_list, NO_CHECKPOINT),
    (bomb_of_an_array, NO_CHECKPOINT),
    (forged(LONG_HEADER, {"dtype": "<f4", "shape": [1]}), r"001\.npz is no.*the header of w\.npy"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(("write", "says"), FOREIGN)
def test_what_is_no_checkpoint_of_ours_is_refused_and_takes_no_memory(write, says, saved):
    write(saved)
    error = NewerFormatError if "upgrade" in says else CheckpointError
    with takes_at_most(1e6), pytest.raises(error, match=says) as refused:
        load_checkpoint(saved)
    assert "pickle" not in str(refused.value)  # which NumPy advises to allow


class MakesAFolder:
    """What runs when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_pickles_are_refused_and_never_run(tmp_path):
    victim = tmp_path / "unpickled"
    array = np.array([MakesAFolder(str(victim))], dtype=object)
    forged(npy(array), {"dtype": "|O", "shape": [1]})(tmp_path / "a.npz")
    with pytest.raises(CheckpointError, match=r"w\.npy holds object, and only plain numbers"):
        load_checkpoint(tmp_path / "a.npz")
    assert not victim.exists()
    np.load(tmp_path / "a.npz", allow_pickle=True)["w"]
    assert victim.exists()  # so that the danger was real


def test_members_that_overlap_to_be_more_than_the_file_are_refused(tmp_path):
    """The inner array lies within the outer one, so that every byte of it would be read twice."""
    inner = np.arange(250_000, dtype=np.float32)
    packed(tmp_path / "inner.zip", {"inner.npy": npy(inner)})
    outer = np.frombuffer((tmp_path / "inner.zip").read_bytes(), np.uint8)
    described = [{"dtype": "|u1", "shape": [len(outer)]}, {"dtype": "<f4", "shape": [len(inner)]}]
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("checkpoint.json", listing(outer=described[0], inner=described[1]))
        archive.writestr("outer.npy", npy(outer))
        with zipfile.ZipFile(tmp_path / "inner.zip") as nested:
            member = nested.getinfo("inner.npy")
        member.header_offset += archive.start_dir - len(outer)
        archive.filelist.append(member)
    with takes_at_most(len(outer) / 2), pytest.raises(CheckpointError, match="or a damaged one"):
        load_checkpoint(path)


def test_running_out_of_memory_says_nothing_about_the_file(saved, monkeypatch):
    def exhausted(*args):
        raise MemoryError

    monkeypatch.setattr(np, "frombuffer", exhausted)
    with pytest.raises(MemoryError):
        newest_checkpoint(saved.parent)


def test_a_file_that_is_not_there_is_a_plain_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError, match="step-00000007"):
        load_checkpoint(checkpoint_path(tmp_path, 7))


# A model's arrays


def test_a_model_is_stored_by_the_names_of_its_parameters_as_they_are_now(device):
    model = small_model(device=device)
    arrays, now = model_arrays(model), to_host(model.flat.data).copy()
    model.flat.data += 1  # as the training goes on
    assert list(arrays) == [f"parameters/{path}" for path, _ in model.named_parameters()]
    for path, parameter in model.named_parameters():
        assert arrays[f"parameters/{path}"].shape == parameter.data.shape
    np.testing.assert_array_equal(np.concatenate([a.ravel() for a in arrays.values()]), now)


def test_the_parameters_of_a_training_checkpoint_fill_the_flat_array_and_what_looks_into_it():
    model, other = small_model(), small_model(seed=1)
    flat = model.flat.data
    arrays = model_arrays(other, m=other.flat.grad) | {"data/order": np.arange(3)}
    load_model_arrays(model, arrays)
    assert model.flat.data is flat
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert np.shares_memory(mine.data, flat)
        np.testing.assert_array_equal(mine.data, theirs.data)


NAME = "parameters/encoder.layers.0.self_attention.w_query"


@pytest.mark.parametrize(("lost", "given", "says"), [
    (NAME, {}, f"missing: {NAME}"),
    ("m/", {}, r"missing: m/source_embedding.weight, .* and \d+ more"),
    ("none", {"m/new": np.zeros(1)}, "unexpected: m/new"),
    (NAME, {"parameters/new": np.zeros(1)}, f"missing: {NAME}; unexpected: parameters/new;"),
    ("none", {NAME: np.zeros(64, np.float32)},
     rf"of another shape or type: {NAME} is float32 \(64,\), not float32 \(\d+, \d+\)"),
    ("none", {NAME: np.zeros((6, 6))},
     rf".*or type: {NAME} is float64 \(6, 6\), not float32 \(6, 6\)"),
])  # fmt: skip
def test_a_checkpoint_that_does_not_fit_changes_nothing_and_says_why(lost, given, says):
    model, other = small_model(), small_model(seed=1)
    m = np.zeros_like(model.flat.data)
    arrays = model_arrays(other, m=other.flat.data)
    arrays = {name: array for name, array in arrays.items() if not name.startswith(lost)} | given
    before = fingerprint(model_arrays(model, m=m), {})
    with pytest.raises(CheckpointError, match=f"of another model: {says}"):
        load_model_arrays(model, arrays, m=m)
    assert fingerprint(model_arrays(model, m=m), {}) == before


# Averages


def test_the_average_is_the_mean_of_the_parameters_and_of_nothing_else(tmp_path):
    """Summed in float64. In float32, 1 + 2⁻²⁴ is 1: small ones would be lost one after another."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((8, 4, 5)).astype(np.float32)
    values[:, 0, 0] = [1, *[2**-24] * 7]
    paths = [checkpoint_path(tmp_path, step) for step in range(8)]
    for path, value in zip(paths, values, strict=True):
        save_checkpoint(path, {"parameters/w": value, "m/w": value}, {})
    arrays = average(iter(paths))
    assert list(arrays) == ["parameters/w"]
    assert arrays["parameters/w"].dtype == np.float32
    expected = values.astype(np.float64).mean(axis=0).astype(np.float32)
    assert expected[0, 0] > np.float32(1 / 8)
    np.testing.assert_array_equal(arrays["parameters/w"], expected)


def test_checkpoints_of_different_models_are_not_averaged(tmp_path):
    for step, shape in enumerate([(1, 3), (3, 1)]):
        save_checkpoint(checkpoint_path(tmp_path, step), {"parameters/w": np.zeros(shape)}, {})
    told = r"01\.npz and .*00\.npz .*parameters/w is float64 \(3, 1\), not float64 \(1, 3\)"
    with pytest.raises(CheckpointError, match=told):
        average(checkpoints(tmp_path))


def test_an_average_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no checkpoints to average"):
        average([])


# A folder of checkpoints


def test_checkpoints_are_listed_by_the_step_in_their_names_not_by_letter(tmp_path):
    steps = [99_999_999, 100_000_000, 2, 10]
    paths = save_steps(tmp_path, steps)
    assert paths[2] == checkpoint_path(str(tmp_path), 2) == tmp_path / "step-00000002.npz"
    assert checkpoints(tmp_path) == [paths[step] for step in sorted(steps)]
    assert newest_checkpoint(tmp_path) == paths[100_000_000]


def test_in_a_folder_of_other_files_and_in_none_there_are_no_checkpoints(tmp_path):
    names = ["step-5.npz.12.tmp", "step-.npz", "step-5.npz.bak", "step-5.json", "best-5.npz", "x"]
    for name in names:
        (tmp_path / name).touch()
    for folder in (tmp_path, tmp_path / "gone"):
        assert checkpoints(folder) == []
        assert newest_checkpoint(folder) is None


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def test_damaged_checkpoints_are_passed_over_with_a_warning_and_stay(tmp_path):
    paths = save_steps(tmp_path, [1, 2, 3, 4])
    cut(paths[3])
    cut(paths[4])
    with pytest.warns(UserWarning, match="passed over: ") as warned:
        assert newest_checkpoint(tmp_path) == paths[2]
    assert [str(paths[3]) in str(w.message) for w in warned] == [False, True]
    cut(paths[1])
    cut(paths[2])
    with pytest.warns(UserWarning, match="passed over: "):
        assert newest_checkpoint(tmp_path) is None
    assert checkpoints(tmp_path) == list(paths.values())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes")
def test_what_is_no_regular_file_is_no_checkpoint(tmp_path):
    paths = save_steps(tmp_path, [1])
    pipe, endless = (checkpoint_path(tmp_path, step) for step in (2, 3))
    os.mkfifo(pipe)
    endless.symlink_to("/dev/zero")
    assert checkpoints(tmp_path) == [paths[1]]
    for path in (pipe, endless):
        with pytest.raises(CheckpointError, match="is no checkpoint: this is no regular file"):
            load_checkpoint(path)


def test_a_newer_format_is_not_passed_over(tmp_path):
    """Training on from an older checkpoint would overwrite what the newer release made."""
    rewritten(save_steps(tmp_path, [1, 2])[2], version=2)
    with pytest.raises(NewerFormatError, match="upgrade"):
        newest_checkpoint(tmp_path)


def test_pruning_keeps_what_it_is_told_and_the_newest(tmp_path):
    paths = save_steps(tmp_path, range(6))
    (tmp_path / "notes.txt").touch()
    prune(tmp_path, keep=[paths[1], str(paths[3])])
    assert checkpoints(tmp_path) == [paths[1], paths[3], paths[5]]
    assert (tmp_path / "notes.txt").exists()


def test_pruning_never_deletes_the_newest_whole_checkpoint(tmp_path):
    paths = save_steps(tmp_path, [1, 2, 3, 4])
    cut(paths[3])
    cut(paths[4])
    with pytest.warns(UserWarning, match="passed over: "):
        prune(tmp_path, keep=[paths[4]])
    assert checkpoints(tmp_path) == [paths[2], paths[4]]
