"""What a user sees of a training: a bar on a terminal with tqdm, plain lines elsewhere."""

import math
import os
import sys
import time
from contextlib import contextmanager

from minitransformer.core.libraries import library_if_there
from minitransformer.core.terminal import bare, readable

SECONDS_BETWEEN_LINES = 10


class Progress:
    """Shows steps and validations on ``stream``, standard error by default.

    When nobody reads it any more (``2>&1 | head``, a terminal that is gone) the rest goes nowhere.

    Attributes:
        unit: of the task whose steps are shown.
    """

    unit = "target token"

    def __init__(self, stream=None):
        self.stream = stream or sys.stderr
        self.bar = None
        self.last_line = -math.inf

    def stepped(self, entry, total_steps):
        """Show a log entry of kind "train"."""
        values = (
            f"loss {entry['loss']:.3f}, NLL {entry['nll']:.3f}, "
            f"{entry['tokens_per_second']:,.0f} {self.unit}s/s"
        )
        if self.bar is None and self.stream.isatty() and (tqdm := library_if_there("tqdm")):
            options = dict(total=total_steps, initial=entry["step"] - 1, unit="step")
            with self._read_or_not():
                self.bar = tqdm.tqdm(**options, file=bare(self.stream))
        if self.bar is not None:
            with self._read_or_not():
                self.bar.set_postfix_str(values, refresh=False)
                self.bar.update(entry["step"] - self.bar.n)
        elif time.monotonic() - self.last_line >= SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            self.say(f"step {entry['step']} of {total_steps}: {values}")

    def validated(self, entry, best, score):
        """Show a log entry of kind "validation" and the best one so far by that Score."""
        mark = "" if entry["epoch"] == best["epoch"] else f", best in epoch {best['epoch']}"
        value = score.shown(entry[score.name])
        self.say(f"epoch {entry['epoch']}: validation {score.label} {value}{mark}")
        if "left_out" in entry:
            self.say(
                f"epoch {entry['epoch']}: training examples left out because they became too long: "
                f"{entry['left_out']:,}"
            )

    def say(self, text):
        """A line of text, above the bar if there is one."""
        write = print if self.bar is None else self.bar.write
        with self._read_or_not():
            write(readable(text), file=bare(self.stream))

    def close(self):
        """Leave the bar as it is and end its line."""
        if self.bar is not None:
            with self._read_or_not():
                self.bar.close()
            self.bar = None

    @contextmanager
    def _read_or_not(self):
        try:
            yield
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())  # also for what Python flushes at its end
            os.close(nowhere)
