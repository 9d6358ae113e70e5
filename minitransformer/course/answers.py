"""Where a reader's answers lie."""

import os
from pathlib import Path

COPIES = "answers", "../answers"  # as the course says, from within a folder of the project as well
ORIGINALS = "lessons/exercises", "exercises", "."


def find_answers(file_name, folders=(*COPIES, *ORIGINALS)):
    """The path of a reader's ``own.py`` or ``ex07.py``: the first there is; None without one.

    That of ``own.py`` the environment may name, in MINITRANSFORMER_OWN: then it is that
    one, whether there is such a file or not. What reads it says so, and goes on with the others.
    """
    if file_name == "own.py" and (given := os.environ.get("MINITRANSFORMER_OWN")):
        return Path(given)
    paths = (Path(folder) / file_name for folder in folders)
    return next((path for path in paths if path.is_file()), None)
