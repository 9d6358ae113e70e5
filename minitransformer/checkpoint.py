"""Checkpoints: plain arrays and JSON in one file, safe to write and read without trust.

A checkpoint is an uncompressed ``.npz`` file that anyone with NumPy can read::

    >>> file = np.load("step-00001000.npz")
    >>> file["parameters/source_embedding.weight"]  # one .npy member for each array
    >>> json.loads(file["checkpoint.json"])  # format, version, state, list of the arrays

Writing: everything goes to a temporary file beside it, is flushed to the disk, and only then takes
the final name. Whoever is killed in between leaves a temporary file that nobody reads.

Reading: format and version come first, then every claimed size, then every checksum (the CRC-32 of
each member), and the list in ``checkpoint.json`` must be exactly what is there. Nothing is ever
unpickled, and no memory is taken because a file says so.
"""

import json
import os
import re
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np

from minitransformer.backend import to_host
from minitransformer.errors import ExplainedError

FORMAT = "minitransformer checkpoint"
VERSION = 1
MANIFEST = "checkpoint.json"
PARAMETERS = "parameters"
_FILE_NAME = re.compile(r"step-([0-9]{8}|[1-9][0-9]{8,})\.npz")
_LEFTOVER = re.compile(_FILE_NAME.pattern + r"\.[0-9]+\.tmp")


class CheckpointError(ExplainedError):
    """A checkpoint that cannot be written, read or used; says which, why, and what to do."""


class NewerFormatError(CheckpointError):
    """A whole checkpoint that a newer release wrote."""


# One file


def save_checkpoint(path, arrays, state):
    """Write ``arrays`` and ``state`` as one file, which is there whole or not at all.

    Args:
        path: its final name; a file that has it already is replaced.
        arrays: NumPy arrays of numbers or booleans, by name.
        state: a dict that JSON returns as it was: string keys, lists and no tuples, no NaN.

    Raises:
        CheckpointError: the file could not be written (a full disk). What was there before is
            untouched, no temporary file stays.
        TypeError, ValueError: an array or the state is of another kind than said above.
    """
    path = Path(path)
    manifest = _manifest_of(arrays, state)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            _write(file, manifest, arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        size = sum(array.nbytes for array in arrays.values()) / 1e6
        raise CheckpointError(
            f"{path} could not be written: {error}; what was there before is untouched. "
            f"It takes {size:.1f} MB: make room for it, or choose another folder"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)  # it is there only after a failure
    _flush_folder(path.parent)


def load_checkpoint(path):
    """The ``(arrays, state)`` that :func:`save_checkpoint` wrote to ``path``, whole and verified.

    Raises:
        CheckpointError: the file is truncated, damaged, or no checkpoint at all.
        NewerFormatError: it is of a newer version of the format than this release knows.
        OSError: it does not exist or may not be opened.
    """
    path = Path(path)
    with open(path, "rb") as file:
        try:
            return _read(file)
        except (NewerFormatError, MemoryError):  # neither says that the file is damaged
            raise
        except Exception as error:  # zipfile meets damage with any of a dozen types
            raise CheckpointError(
                f"{path} is no checkpoint, or a damaged one: {error}; choose an earlier one"
            ) from error


def _manifest_of(arrays, state):
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
            raise TypeError(
                f"{name} is a {type(array).__name__} of {getattr(array, 'dtype', 'no dtype')}; a "
                "checkpoint holds NumPy arrays of numbers or booleans, and backend.to_host "
                "fetches arrays from a device"
            )
    returned = json.loads(json.dumps(state, allow_nan=False))
    changed = [key for key in state if key not in returned or returned[key] != state[key]]
    if changed:
        raise TypeError(
            f"JSON would return {', '.join(map(repr, changed))} of the state as something else; "
            "use dicts with string keys, lists, strings, numbers, booleans and None"
        )
    described = {name: _description(array) for name, array in arrays.items()}
    return dict(format=FORMAT, version=VERSION, state=state, arrays=described)


def _description(array):
    return {"dtype": array.dtype.str, "shape": list(array.shape)}


def _write(file, manifest, arrays):
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        with archive.open(MANIFEST, "w") as member:
            member.write(json.dumps(manifest).encode())
        for name, array in arrays.items():
            with archive.open(_member(name), "w", force_zip64=True) as member:
                rows = np.asarray(array, order="C")
                np.lib.format.write_array(member, rows, version=(1, 0), allow_pickle=False)


def _read(file):
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        by_name = {member.filename: member for member in members}
        _require(MANIFEST in by_name, f"it has no {MANIFEST}")
        _require_plain([by_name[MANIFEST]], size)
        manifest = json.loads(archive.read(MANIFEST))
        name = manifest.get("format")
        _require(name == FORMAT, f"its format is {name!r}, not {FORMAT!r}")
        if manifest["version"] > VERSION:
            raise NewerFormatError(
                f"{file.name} has version {manifest['version']} of the checkpoint format, and this "
                f"release of minitransformer reads version {VERSION}; upgrade minitransformer"
            )
        _require(manifest["version"] == VERSION, f"its version is {manifest['version']!r}")
        described, state = manifest["arrays"], manifest["state"]
        listed = [MANIFEST, *map(_member, described)]
        found = [member.filename for member in members]
        _require(sorted(found) == sorted(listed), "its list of arrays is not what it holds")
        _require_plain(members, size)
        _require(isinstance(state, dict), "its state is no dict")
        arrays = {name: _read_array(archive, _member(name)) for name in described}
    for name, array in arrays.items():
        _require(_description(array) == described[name], f"{name} is not as its list says")
    return arrays, state


def _require_plain(members, size):
    """Refuse what takes more memory to read than the file has bytes: zip bombs of all kinds."""
    stored = all(
        member.compress_type == zipfile.ZIP_STORED and member.compress_size == member.file_size
        for member in members
    )
    _require(stored, "a member is compressed")
    _require(sum(member.file_size for member in members) <= size, "it claims more than it holds")


def _read_array(archive, member_name):
    with archive.open(member_name) as member:
        version = np.lib.format.read_magic(member)
        _require(version == (1, 0), f"{member_name} has version {version} of the .npy format")
        shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(
            member,
            max_header_size=1000,  # ours have 118; one of 10,000 can exhaust Python's parser
        )
        plain = dtype.kind in "biuf" and not fortran_order
        _require(plain, f"{member_name} holds {dtype}, and only plain numbers are read")
        content = member.read()  # to the end, where zipfile compares the checksum
    return np.frombuffer(content, dtype).reshape(shape).copy()  # a copy, as a view is read-only


def _member(name):
    return f"{name}.npy"


def _require(condition, message):
    if not condition:
        raise ValueError(message)


def _flush_folder(folder):
    """Make a new name in ``folder`` survive a power cut, where the system has a way to."""
    with suppress(OSError):  # the file is complete and in place; Windows cannot open a folder
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# A model's arrays


def model_arrays(model, **vectors):
    """Host copies of the parameters of a Transformer, by name: ``parameters/<path>``.

    Args:
        vectors: further arrays laid out like ``model.flat.data``. ``m=adam.m, v=adam.v`` adds
            ``m/<path>`` and ``v/<path>``.
    """
    arrays = {}
    for group, vector in _groups(model, vectors).items():
        host = np.array(to_host(vector))
        for path, parameter in model.named_parameters():
            piece = host[model.flat.slices[path]]
            arrays[f"{group}/{path}"] = piece.reshape(parameter.data.shape)
    return arrays


def load_model_arrays(model, arrays, **vectors):
    """Put what :func:`model_arrays` returned back in place, all of it or nothing.

    Groups that are not asked for are left alone: without ``m`` and ``v`` a training checkpoint
    gives its parameters.

    Raises:
        CheckpointError: a name is missing or too many, a shape or dtype differs; lists them.
    """
    groups = _groups(model, vectors)
    expected = {
        f"{group}/{path}": (parameter.data.shape, vector.dtype)
        for group, vector in groups.items()
        for path, parameter in model.named_parameters()
    }
    given = {name: array for name, array in arrays.items() if name.partition("/")[0] in groups}
    differences = _differences(_kinds(given), expected)
    if differences:
        raise CheckpointError(
            f"the checkpoint is of another model: {differences}; "
            "build the model with the configuration it was trained with"
        )
    for group, vector in groups.items():
        pieces = [arrays[f"{group}/{path}"].reshape(-1) for path in model.flat.slices]
        with model.device.as_current():
            vector[:] = model.device.asarray(np.concatenate(pieces))


def average(paths):
    """The mean of the parameters of several checkpoints, summed in float64.

    Returns:
        arrays for :func:`load_model_arrays`, in the dtype of the first checkpoint.

    Raises:
        CheckpointError: one cannot be read, or two differ in names, shapes or dtypes.
        ValueError: there are no paths.
    """
    paths = list(paths)
    _require(paths, "there are no checkpoints to average")
    first = _load_parameters(paths[0])
    sums = {name: array.astype(np.float64) for name, array in first.items()}
    for path in paths[1:]:
        arrays = _load_parameters(path)
        differences = _differences(_kinds(arrays), _kinds(first))
        if differences:
            raise CheckpointError(
                f"{path} and {paths[0]} are of different models: {differences}; "
                "average checkpoints of one run"
            )
        for name, array in arrays.items():
            sums[name] += array
    return {name: (sums[name] / len(paths)).astype(first[name].dtype) for name in first}


def _load_parameters(path):
    arrays, _ = load_checkpoint(path)
    return {name: array for name, array in arrays.items() if name.startswith(f"{PARAMETERS}/")}


def _groups(model, vectors):
    return {PARAMETERS: model.flat.data, **vectors}


def _kinds(arrays):
    return {name: (array.shape, array.dtype) for name, array in arrays.items()}


def _differences(given, expected):
    """How two dicts of (shape, dtype) by name differ, in words; "" where they do not."""
    missing = [name for name in expected if name not in given]
    unexpected = [name for name in given if name not in expected]
    changed = [
        f"{name} is {given[name][1]} {given[name][0]}, not {expected[name][1]} {expected[name][0]}"
        for name in expected
        if name in given and given[name] != expected[name]
    ]
    lists = {"missing": missing, "unexpected": unexpected, "of another shape or type": changed}
    return "; ".join(f"{what}: {_shortened(names)}" for what, names in lists.items() if names)


def _shortened(names, shown=5):
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")


# A folder of checkpoints, which belongs to one run


def checkpoint_path(folder, step):
    """The file of that training step in ``folder``, ``step-00001234.npz``."""
    return Path(folder) / f"step-{step:08d}.npz"


def checkpoints(folder):
    """The paths of all checkpoints in ``folder``, oldest step first, not yet looked into.

    They are the files whose names :func:`checkpoint_path` gives; others are somebody else's.
    """
    steps = {
        path: int(match[1])
        for path in Path(folder).glob("step-*")
        if (match := _FILE_NAME.fullmatch(path.name)) and path.is_file()
    }
    return sorted(steps, key=steps.get)


def newest_checkpoint(folder):
    """The path of the newest checkpoint in ``folder`` that loads whole, or None.

    Damaged ones are passed over with a warning that names them; nothing is removed.

    Raises:
        NewerFormatError: the newest whole one needs a newer release. Training on from an older
            one would overwrite it.
    """
    for path in reversed(checkpoints(folder)):
        try:
            load_checkpoint(path)
        except NewerFormatError:
            raise
        except CheckpointError as error:
            warnings.warn(f"passed over: {error}", stacklevel=2)
        else:
            return path
    return None


def prune(folder, keep):
    """Delete the checkpoints of ``folder`` except those in ``keep`` and the newest whole one.

    Temporary files of killed processes go too.
    """
    kept = {Path(path).name for path in keep}
    newest = newest_checkpoint(folder)
    for path in checkpoints(folder):
        if path.name not in kept and path != newest:
            path.unlink()
    for path in Path(folder).glob("step-*"):
        if _LEFTOVER.fullmatch(path.name) and path.is_file():
            path.unlink()
