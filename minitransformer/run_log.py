"""The log of a training: ``metrics.jsonl`` of its run folder, one JSON object a line.

It only ever grows, so that whoever is killed while writing leaves a last line cut short and nothing
worse; where a run goes on, what it will log again is dropped first. Each entry has a ``kind``,
"train" for a step or "validation" for an epoch.
"""

import json
import os
from pathlib import Path

from minitransformer.checkpoint import CheckpointError
from minitransformer.checkpoint.fields import count, number, require_fields
from minitransformer.regular_file import read_regular, written_whole

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
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, allow_nan=False) + "\n")

    def write(self, entries):
        """Make these all that there is, a list of dicts."""
        with written_whole(self.path) as file:  # in the place of a link, too: we append to it
            file.write("".join(json.dumps(entry) + "\n" for entry in entries).encode())

    def entries(self):
        """All entries, as a list of dicts; a last line cut short is left out.

        One of kind "train" has a step, one of kind "validation" a step, an epoch and a score.

        Raises:
            CheckpointError: another line is damaged.
            OSError: it is no file to be read: see :func:`read_regular`.
        """
        if not self.path.exists():
            return []
        lines = read_regular(self.path, MOST).split(b"\n")[:-1]
        return [self._entry(line, line_number) for line_number, line in enumerate(lines, start=1)]

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
            CheckpointError, OSError: as for :meth:`entries`.
        """
        if not os.path.lexists(self.path):
            return
        done = {"train": ("step", step), "validation": ("epoch", epoch)}
        kept = []
        for entry in self.entries():
            counter, last = done[entry["kind"]]
            if entry[counter] <= last:
                kept.append(entry)
        self.write(kept)
