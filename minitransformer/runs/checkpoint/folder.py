"""A folder of files that are told by a number: a checkpoint a step, the parameters an epoch."""

import re
import warnings
from dataclasses import dataclass
from pathlib import Path

from minitransformer.runs.checkpoint.file import CheckpointError, NewerFormatError, load_checkpoint


@dataclass(frozen=True)
class Numbered:
    """Files of names such as ``step-00001234.npz``; those of other names are somebody else's.

    Attributes:
        counter: what is counted, ``"step"``.
        digits: the fewest.
    """

    counter: str
    digits: int

    def path(self, folder, number):
        """The file of that number in ``folder``."""
        return Path(folder) / f"{self.counter}-{number:0{self.digits}}.npz"

    def number(self, name):
        """The number in the name of such a file, or None."""
        match = re.fullmatch(rf"{self.counter}-([0-9]+)\.npz", name)
        return int(match[1]) if match and self.path("", int(match[1])).name == name else None

    def __contains__(self, name):
        return self.number(name) is not None

    def paths(self, folder):
        """Those in ``folder``, the lowest number first, not yet looked into."""
        numbers = {
            path: number
            for path in Path(folder).glob(f"{self.counter}-*")
            if (number := self.number(path.name)) is not None and path.is_file()
        }
        return sorted(numbers, key=numbers.get)


STEPS, EPOCHS = Numbered("step", 8), Numbered("epoch", 4)
checkpoint_path, checkpoints = STEPS.path, STEPS.paths


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
    """Delete the checkpoints of ``folder`` except those in ``keep`` and the newest whole one."""
    kept = {Path(path).name for path in keep}
    newest = newest_checkpoint(folder)
    for path in checkpoints(folder):
        if path.name not in kept and path != newest:
            path.unlink()
