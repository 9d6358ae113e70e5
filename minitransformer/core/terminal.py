"""What a text may do to a terminal: nothing but to be read.

A run folder may be from anywhere, and its texts, names and pieces may hold characters that a
terminal obeys: they colour, erase, change the title of its window, or turn the order of letters
round. While a command runs, its standard streams escape them, ESC as ``\\x1b``, whatever is
printed, and by whom. Standard error does it in a file as well, which somebody looks at later. Two
things are as they are: what a bar of progress, help or a usage writes, and, where no terminal is,
the text that a command is asked for, such as a translation.
"""

import re
import sys
from contextlib import contextmanager, suppress

# C0 but for tab and line feed, DEL, and C1; what embeds, overrides and isolates directions of text.
OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def readable(text):
    """The text with what a terminal obeys escaped."""
    return OBEYED.sub(lambda found: ascii(found[0])[1:-1], text)


class ReadableStream:
    """A text stream like the one that it is made of, on which texts arrive readable.

    Attributes:
        bare: that one.
        name: what an error calls it, as one calls a file by its name: its disk may be full.
    """

    def __init__(self, stream, name="standard output"):
        self.bare, self.name = stream, name

    def write(self, text):
        with self._named():
            self.bare.write(readable(text))
        return len(text)

    def writelines(self, lines):
        self.write("".join(lines))

    def flush(self):
        with self._named():
            self.bare.flush()

    @contextmanager
    def _named(self):
        try:
            yield
        except OSError as error:
            error.filename = self.name
            raise

    def __getattr__(self, name):
        return getattr(self.bare, name)


@contextmanager
def readable_streams():
    """Inside, standard output and standard error are readable."""
    before = sys.stdout, sys.stderr
    sys.stdout = ReadableStream(sys.stdout)
    sys.stderr = ReadableStream(sys.stderr, "standard error")
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def bare(stream):
    """The stream to write to what a terminal is to obey."""
    return stream.bare if isinstance(stream, ReadableStream) else stream


def exact(stream):
    """The stream to write a text to that somebody has asked for: readable on a terminal alone."""
    return stream if stream.isatty() else bare(stream)


def note(text, before=""):
    """Say something on standard error, if somebody reads it."""
    with suppress(OSError):
        print(f"{before}minitransformer: {text}", file=sys.stderr)
