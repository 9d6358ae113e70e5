"""One checkpoint: plain arrays and JSON in one file, safe to write and read without trust.

It is an uncompressed ``.npz`` file that anyone with NumPy can read::

    >>> file = np.load("step-00001000.npz")
    >>> file["parameters/source_embedding.weight"]  # one .npy member for each array
    >>> json.loads(file["checkpoint.json"])  # format, version, state, list of the arrays

Writing: everything goes to a temporary file beside it, is flushed to the disk, and only then takes
the final name, see :func:`written_whole`. Whoever is killed in between leaves a temporary file that
nobody reads.

Reading: format and version come first, then every claimed size, then every checksum (the CRC-32 of
each member), and the list in ``checkpoint.json`` must be exactly what is there. Nothing is ever
unpickled, and no memory is taken because a file says so.
"""

import errno
import json
import math
import os
import zipfile
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import numpy as np

from minitransformer.core.errors import ExplainedError
from minitransformer.core.npy import read_npy
from minitransformer.core.regular_file import IrregularFileError, open_regular, written_whole

FORMAT = "minitransformer checkpoint"
VERSION = 1
NO_ROOM = errno.ENOSPC, errno.EDQUOT, errno.EFBIG  # on the disk, of a user, in a file
MANIFEST = "checkpoint.json"
MOST_JSON = 10**7  # bytes of checkpoint.json: no model has so many arrays


class RunError(ExplainedError):
    """A run folder, or a file of it, that cannot be used; says which, why, and what to do."""


class CheckpointError(RunError):
    """A checkpoint that cannot be written, read or used; says which, why, and what to do."""


class NewerFormatError(CheckpointError):
    """A whole checkpoint that a newer release wrote."""


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
    try:
        with written_whole(path) as file:
            _write(file, manifest, arrays)
    except OSError as error:
        words = f"{error.strerror or error}; what was there before is untouched"
        if error.errno in NO_ROOM:
            size = sum(array.nbytes for array in arrays.values())
            takes = f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size:,} bytes"
            words += f". It takes about {takes}: make room for it, or choose another folder"
        raise CheckpointError(f"{path} could not be written: {words}") from error
    _flush_folder(path.parent)


def load_checkpoint(path):
    """The ``(arrays, state)`` that :func:`save_checkpoint` wrote to ``path``, whole and verified.

    Raises:
        CheckpointError: the file is truncated, damaged, or no checkpoint at all.
        NewerFormatError: it is of a newer version of the format than this release knows.
        OSError: it does not exist or may not be opened.
    """
    return _loaded(path, _read)


class StoredArray:
    """An array of a checkpoint that is read, and its checksum compared, when it is asked for.

    ``np.asarray`` of it gives the array, each time anew.

    Attributes:
        shape, dtype, size: as the checkpoint describes it.
    """

    def __init__(self, path, file, name, description):
        self._path, self._name, self._description = path, name, description
        self._identity = _identity(file)
        self.shape, self.dtype = tuple(description["shape"]), np.dtype(description["dtype"])
        self.size = math.prod(self.shape)

    def __array__(self, dtype=None, copy=None):
        array = _loaded(self._path, self._read)
        return array if dtype is None else array.astype(dtype)

    def _read(self, file):
        _require(_identity(file) == self._identity, "it was replaced while it was read")
        with zipfile.ZipFile(file) as archive:
            array = _read_array(archive, _member(self._name))
        _require(_description(array) == self._description, f"{self._name} is not as its list says")
        return array


def open_checkpoint(path):
    """As :func:`load_checkpoint`, with a StoredArray for each array.

    Raises:
        CheckpointError, NewerFormatError, OSError: as for :func:`load_checkpoint`; of the arrays
            when they are asked for.
    """
    return _loaded(path, partial(_read_descriptions, path))


def load_state(path):
    """The state alone, as for :func:`load_checkpoint`; the arrays are not looked at."""
    return _loaded(path, _read_state)


def _loaded(path, read):
    path = Path(path)
    try:
        with open_regular(path) as file, _damage_named(path):
            return read(file)
    except IrregularFileError as error:
        raise CheckpointError(f"{path} is no checkpoint: {error.strerror}") from error


@contextmanager
def _damage_named(path):
    try:
        yield
    except (NewerFormatError, MemoryError):  # neither says that the file is damaged
        raise
    except Exception as error:  # zipfile meets damage with any of a dozen types
        raise CheckpointError(f"{path} is no checkpoint, or a damaged one: {error}") from error


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
    with zipfile.ZipFile(file) as archive:
        described, state = _read_manifest(archive)
        arrays = {name: _read_array(archive, _member(name)) for name in described}
    for name, array in arrays.items():
        _require(_description(array) == described[name], f"{name} is not as its list says")
    return arrays, state


def _read_descriptions(path, file):
    with zipfile.ZipFile(file) as archive:
        described, state = _read_manifest(archive)
        arrays = {name: StoredArray(path, file, name, d) for name, d in described.items()}
        for name, array in arrays.items():  # before somebody takes memory for it
            there = archive.getinfo(_member(name)).file_size
            _require(array.size * array.dtype.itemsize <= there, f"{name} is not as its list says")
    return arrays, state


def _identity(file):
    """What another file under the same name differs in."""
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _read_state(file):
    with zipfile.ZipFile(file) as archive:
        _, state = _read_manifest(archive)
    return state


def _read_manifest(archive):
    """The descriptions of the arrays, which are those in the archive, and the state."""
    size = archive.fp.seek(0, os.SEEK_END)
    members = archive.infolist()
    by_name = {member.filename: member for member in members}
    _require(MANIFEST in by_name, f"it has no {MANIFEST}")
    _require_plain([by_name[MANIFEST]], min(size, MOST_JSON))
    manifest = json.loads(archive.read(MANIFEST))
    name = manifest.get("format")
    _require(name == FORMAT, f"its format is {name!r}, not {FORMAT!r}")
    if manifest["version"] > VERSION:
        raise NewerFormatError(
            f"{archive.filename} has version {manifest['version']} of the checkpoint format, and "
            f"this release of minitransformer reads version {VERSION}; upgrade minitransformer"
        )
    _require(manifest["version"] == VERSION, f"its version is {manifest['version']!r}")
    described, state = manifest["arrays"], manifest["state"]
    listed = [MANIFEST, *map(_member, described)]
    found = [member.filename for member in members]
    _require(sorted(found) == sorted(listed), "its list of arrays is not what it holds")
    _require_plain(members, size)
    _require(isinstance(state, dict), "its state is no dict")
    return described, state


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
        # To the end, where zipfile compares the checksum.
        array = read_npy(member, member_name, archive.getinfo(member_name).file_size)
    return array.copy()  # which can be written to


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
