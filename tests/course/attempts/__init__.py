r"""Attempts at the exercises: a file for each exercise, as ``lessons/solutions/`` has.

``WRONG`` has the functions that are attempted, and below each a row for each answer to it: what is
written in the solution, what instead, what must be said of it. ``RIGHT`` has answers that are right
and not written as in the solution; of some there is a note.

    lean_stack_backward
        reversed(layers), reversed(cache) -> layers, cache || WRONG  dx
        starts_over || a layer's forward ran 4 times

What is replaced must stand once in that function, or else in its backward; ``&&`` stands between
two changes, ``||`` between two things that are said, ``\n`` for the end of a line, ``$NAME`` for a
text of the file. An answer that is no change of the solution is a function, of the file or in a
word. A row goes on in the next line, further in, and may end in a ``# comment``.
"""

import importlib
from string import Template

from exercise_files import definitions_in, solution_of


def attempts(table, name):
    """The function, the answer and what is said of it, for each row of a table on an exercise.

    An answer is what is written in place of what, a dictionary, or else a function.
    """
    names = vars(importlib.import_module(f"attempts.{name}"))
    text = Template(names.get(table, "")).substitute(names)
    rows = []
    for line in text.replace("\n        ", " ").splitlines():
        answer, *says = (piece.strip() for piece in line.partition("  # ")[0].split("||"))
        if not line.startswith(" "):
            function = answer
        elif " ->" in answer:
            slip = dict(map(_change, answer.split("&&")))
            rows.append((_changed(function, slip, definitions_in(solution_of(name))), slip, says))
        else:
            rows.append((function, eval(answer, names), says))
    return rows


def _changed(function, slip, texts):
    """Which of a pair says what is replaced first."""
    backward = f"{function}_backward"
    return backward if next(iter(slip)) not in texts[function] and backward in texts else function


def _change(text):
    was, instead = f"{text} ".replace(r"\n", "\n").split(" -> ")
    return was.strip(" "), instead.strip(" ")
