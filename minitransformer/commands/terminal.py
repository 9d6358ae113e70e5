"""What a text may do to a terminal: nothing but to be read.

A vocabulary may be from anywhere, and its pieces may hold characters that a terminal obeys: they
colour, erase, or change the title of its window.
"""

import re
import sys

OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # C0 but for tab and line feed, DEL, and C1


def shown(text):
    """The text for standard output; on a terminal such characters are escaped, ESC is ``\\x1b``."""
    if not sys.stdout.isatty():
        return text
    return OBEYED.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
