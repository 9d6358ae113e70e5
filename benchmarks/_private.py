"""What a report that is made public says nothing of: whose machine it was made on, and where."""

import getpass
import os
import platform
import re
import sys
import tempfile
from contextlib import suppress
from pathlib import Path


def without_private(value, folders):
    """A value of JSON in whose texts folders, user and machine have other names.

    Args:
        value: a text, number, list or dict; keys of dicts stay.
        folders: the names to write, by the folders they stand for; home, the folder of temporary
            files and that of Python are known.
    """
    home = Path.home()
    folders = {tempfile.gettempdir(): "TMP", sys.prefix: "PYTHON", home: "~"} | folders
    patterns = {}
    for folder, word in folders.items():
        for path in {os.path.abspath(folder), os.path.realpath(folder)}:
            if path != os.path.sep:  # a container's home may be the root of all paths
                patterns[path] = rf"{re.escape(path)}(?![\w-])", word
    replaced = [patterns[path] for path in sorted(patterns, key=len, reverse=True)]
    replaced += [(rf"\b{re.escape(name)}\b", word) for name, word in _names().items()]

    def clean(value):
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items()}
        if isinstance(value, list):
            return [clean(item) for item in value]
        if isinstance(value, str):
            for pattern, word in replaced:
                value = re.sub(pattern, lambda _, word=word: word, value)
        return value

    return clean(value)


def _names():
    """What to write in place of the names of machine and user; everybody's names may stay."""
    names = {platform.node(): "MACHINE", platform.node().partition(".")[0]: "MACHINE"}
    with suppress(KeyError, OSError):  # a user without a name, as in some containers
        names[getpass.getuser()] = "USER"
    return {name: word for name, word in names.items() if name not in ("", "root", "localhost")}
