"""What a run keeps beside its parameters: files that these mean nothing without.

A task says which ones all its runs have, as a vocabulary; here are those that a training may have
beside them. Each is a line of a table. A checkpoint notes the SHA-256 of all of them by their
names, so that none can be exchanged in silence.
"""

import hashlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from minitransformer.core.regular_file import open_regular, read_regular, written_whole
from minitransformer.runs.checkpoint.file import (
    RunError,
    load_checkpoint,
    load_state,
    save_checkpoint,
)

MOST = 10**8  # bytes of one that is no checkpoint


class KeptFile(NamedTuple):
    """Where a run folder keeps something, and how.

    Attributes:
        name: of the file.
        save: writes it, ``save(path, what)``.
        load: reads it, ``load(path)``.
        option: of ``train``, without which a run has none; empty where all runs of a task have one.
    """

    name: str
    save: Callable
    load: Callable
    option: str = ""


def save_bytes(path, content):
    """Write a file, whole or not at all."""
    with written_whole(path) as file:
        file.write(content)


OF_TRAINING = {
    "own": KeptFile("own.py", save_bytes, partial(read_regular, most=10**6), "--own"),
    "beginning": KeptFile(
        "beginning.npz", lambda path, what: save_checkpoint(path, *what), load_checkpoint, "--from"
    ),
}


def keep(path, file, what):
    """Write a KeptFile at ``path``, if there is none or the same; see :meth:`RunFolder.keep`."""
    if not path.exists():
        file.save(path, what)
        return
    fresh = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        file.save(fresh, what)
        same = sha256(fresh) == sha256(path)
    finally:
        fresh.unlink(missing_ok=True)
    if not same:
        raise RunError(
            f"{path} is there already, and is not what this training has: move it away, or choose "
            "another folder"
        )


def sha256(path):
    """The SHA-256 of a file, as a checkpoint notes it.

    Raises:
        CheckpointError: it is called a checkpoint, and is none.
        OSError: it is missing, or no file to be read, or larger than any that is kept.
    """
    most = MOST
    if Path(path).suffix == ".npz":
        load_state(path)  # which finds out at once that it is far longer than what it holds
        most = float("inf")
    with open_regular(path, most) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
