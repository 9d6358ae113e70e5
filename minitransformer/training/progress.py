"""What a user sees of a training: a bar on a terminal with tqdm, plain lines elsewhere."""

import math
import sys
import time

from minitransformer.libraries import library_if_there

SECONDS_BETWEEN_LINES = 10


class Progress:
    """Shows steps and validations on ``stream``, standard error by default."""

    def __init__(self, stream=None):
        self.stream = stream or sys.stderr
        self.bar = None
        self.last_line = -math.inf

    def stepped(self, entry, total_steps):
        """Show a log entry of kind "train"."""
        values = (
            f"loss {entry['loss']:.3f}, NLL {entry['nll']:.3f}, "
            f"{entry['tokens_per_second']:,.0f} target tokens/s"
        )
        if self.bar is None and self.stream.isatty() and (tqdm := library_if_there("tqdm")):
            options = dict(total=total_steps, initial=entry["step"] - 1, unit="step")
            self.bar = tqdm.tqdm(**options, file=self.stream)
        if self.bar is not None:
            self.bar.set_postfix_str(values, refresh=False)
            self.bar.update(entry["step"] - self.bar.n)
        elif time.monotonic() - self.last_line >= SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            self.say(f"step {entry['step']} of {total_steps}: {values}")

    def validated(self, entry, best):
        """Show a log entry of kind "validation" and the best one so far."""
        mark = "" if entry["epoch"] == best["epoch"] else f", best in epoch {best['epoch']}"
        self.say(f"epoch {entry['epoch']}: validation BLEU {entry['bleu']:.1f}{mark}")
        if "left_out" in entry:
            self.say(
                f"epoch {entry['epoch']}: training pairs left out because subword dropout made "
                f"them too long: {entry['left_out']:,}"
            )

    def say(self, text):
        """A line of text, above the bar if there is one."""
        write = print if self.bar is None else self.bar.write
        write(text, file=self.stream)

    def close(self):
        """Leave the bar as it is and end its line."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None
