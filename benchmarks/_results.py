"""The file of a result, as JSON."""

import json

from minitransformer.core.regular_file import written_whole


def rows_of(file):
    """The rows in a file of results; none where there is no file yet."""
    return json.loads(file.read_text("utf-8"))["rows"] if file.exists() else []


def write(result, file):
    """Write a result, where a file is asked for.

    Rows that are all in the file already stay there with the command that brought them.
    """
    if file and not ("rows" in result and result["rows"] == rows_of(file)):
        with written_whole(file) as written:
            written.write((json.dumps(result, indent=1) + "\n").encode())
