"""The log of a training: ``metrics.jsonl`` of its run folder, one JSON object a line.

It only ever grows, so that whoever is killed while writing leaves a last line cut short and nothing
worse; where a run goes on, what it will log again is dropped first. Each entry has a ``kind``,
"train" for a step or "validation" for an epoch.
"""

import json
import os
import warnings
from pathlib import Path

from minitransformer.core.regular_file import errors_named, open_regular, written_whole
from minitransformer.runs.checkpoint.fields import count, number, require_fields
from minitransformer.runs.checkpoint.file import CheckpointError

MOST = 10**9  # bytes; a million steps have 300 MB
KINDS = {"train": {"step": count}, "validation": dict(step=count, epoch=count)}
NO_SCORES = {"step", "epoch", "seconds", "left_out"}  # what else a validation has


class RunLog:
    """The entries in a file, which need not be there.

    Attributes:
        path: where it is.
    """

    def __init__(self, path):
        self.path = Path(path)

    def append(self, entry):
        """Write one entry, a dict, as the last."""
        with errors_named(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, allow_nan=False) + "\n")

    def write(self, entries):
        """Make these all that there is, dicts."""
        with written_whole(self.path) as file:  # in the place of a link, too: we append to it
            for entry in entries:
                file.write(json.dumps(entry).encode() + b"\n")

    def entries(self):
        """All of them as a list: of a long log that takes far more memory than one by one."""
        return list(self)

    def __iter__(self):
        """Yield each entry, a dict, as it is read; a last line cut short is left out.

        One of kind "train" has a step, one of kind "validation" a step, an epoch and a score. Where
        the first entries are missing, a warning says so.

        Raises:
            CheckpointError: another line is damaged.
            OSError: it is no file to be read: see :func:`open_regular`.
        """
        if not self.path.exists():
            return
        with open_regular(self.path, MOST) as file:
            for line_number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    return
                entry = self._entry(line, line_number)
                if line_number == 1 and entry["step"] > 1:  # and the first step is always logged
                    warnings.warn(
                        f"{self.path} has lost its beginning: its first entry is of step "
                        f"{entry['step']}. What was before is not known here; take the file from "
                        "a copy of the run",
                        stacklevel=2,
                    )
                yield entry

    def _entry(self, line, line_number):
        where = f"{self.path}, line {line_number}"
        try:
            entry = require_fields(where, json.loads(line), kind=str)
        except (ValueError, RecursionError) as error:
            raise CheckpointError(f"{where} is damaged: {error}; remove the line") from error
        if entry["kind"] not in KINDS:
            raise CheckpointError(f"{where} is damaged: its kind is {entry['kind'][:99]!r}")
        values = dict.fromkeys(entry.keys() - {"kind"}, number)
        counts = KINDS[entry["kind"]]
        if entry["kind"] == "validation" and not values.keys() - NO_SCORES:
            raise CheckpointError(f"{where} is damaged: it has no score")
        return require_fields(where, entry, **values | counts)

    def forget_after(self, step, epoch):
        """Drop the entries that a run resumed after ``step``, with ``epoch`` epochs done, repeats.

        A validation is told by its epoch: a checkpoint of the same step may come before it.

        Raises:
            CheckpointError, OSError: as for reading it.
        """
        if not os.path.lexists(self.path):
            return
        done = {"train": ("step", step), "validation": ("epoch", epoch)}

        def is_done(entry):
            counter, last = done[entry["kind"]]
            return entry[counter] <= last

        self.write(filter(is_done, self))
