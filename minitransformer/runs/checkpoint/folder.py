"""A folder of checkpoints, which belongs to one run: a file a step, of which the newest counts."""

import re
import warnings
from pathlib import Path

from minitransformer.runs.checkpoint.file import CheckpointError, NewerFormatError, load_checkpoint

_FILE_NAME = re.compile(r"step-([0-9]{8}|[1-9][0-9]{8,})\.npz")
_LEFTOVER = re.compile(_FILE_NAME.pattern + r"\.[0-9]+\.tmp")


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

    As for :func:`load_newest`.
    """
    newest = load_newest(folder)
    return newest and newest[0]


def load_newest(folder):
    """(path, arrays, state) of the newest checkpoint in ``folder`` that is whole, or None.

    Damaged ones are passed over with a warning that names them; nothing is removed.

    Raises:
        NewerFormatError: the newest whole one needs a newer release. Training on from an older
            one would overwrite it.
    """
    for path in reversed(checkpoints(folder)):
        try:
            return path, *load_checkpoint(path)
        except NewerFormatError:
            raise
        except CheckpointError as error:
            warnings.warn(f"passed over: {error}", stacklevel=2)
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
