"""What the lessons share: the look of their plots, tables of shapes, source code, and stops.

use_style()
shape_table({"B": 2, "T": 5, "D": 8}, x=(x, "B T D", "the input"))
source_of(check_pair)
try_yours("layer_norm", facts)
show("layer_norm")

At a stop the reader writes a part of ``own.py``: the facts are tried on it, and the package's
source is shown where it is right. Their file is the one that the environment names in
MINITRANSFORMER_OWN, or ``answers/own.py``, here or in the folder above. Each call reads it anew.
"""

import inspect
import os
import textwrap
from functools import partial
from pathlib import Path

from minitransformer.core.libraries import library
from minitransformer.course.exercises import parts_of
from minitransformer.course.exercises.parts import RIGHT, TO_DO, WRONG, Answer
from minitransformer.course.own.check import ENDLESS, check_part, not_there, time_limit
from minitransformer.course.own.file import OwnFile
from minitransformer.course.own.package import FUNCTIONS
from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.learner import did_you_mean

# The palette of Okabe and Ito (2008): distinct to every eye, and in grey where it follows the order
# of use_style, which also changes the dashes.
BLACK, ORANGE, SKY, GREEN = "#000000", "#e69f00", "#56b4e9", "#009e73"
YELLOW, BLUE, VERMILION, PURPLE = "#f0e442", "#0072b2", "#d55e00", "#cc79a7"


def use_style():
    """Make pyplot's figures alike: one palette, lines that differ in print, no superfluous ink."""
    plt = library("matplotlib.pyplot", "a picture")
    cycler = plt.cycler
    colours = cycler(color=[BLUE, VERMILION, GREEN, PURPLE, ORANGE, BLACK])
    dashes = cycler(linestyle=["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3))])
    plt.rcParams.update(
        {
            "axes.prop_cycle": colours + dashes,
            "axes.grid": True,
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlesize": 11,
            "figure.constrained_layout.use": True,
            "figure.dpi": 110,
            "figure.facecolor": "white",  # also on a dark page
            "figure.figsize": (7, 4),
            "font.size": 10.5,
            "grid.color": "#e0e0e0",
            "legend.frameon": False,
            "lines.linewidth": 1.8,
        }
    )


class Shown:
    """Text that a notebook renders as Markdown, when it is the last thing in a cell."""

    def __init__(self, markdown, plain):
        self.markdown = markdown
        self.plain = plain

    def _repr_markdown_(self):
        return self.markdown

    def __repr__(self):
        return self.plain


def source_of(*objects):
    """The source code of functions and classes of the package, as it is installed."""
    pieces = (textwrap.dedent(inspect.getsource(thing)).rstrip() for thing in objects)
    source = "\n\n\n".join(pieces)
    return Shown(f"```python\n{source}\n```", source)


def try_yours(name, facts):
    """Print for each fact whether it holds for the reader's functions, whatever these may do.

    Args:
        name: of the part of ``own.py``.
        facts: a generator function whose parameters are functions of ``own.py``, by their names.
            It yields what should be so, in words, and whether it is.
    """
    names = list(inspect.signature(facts).parameters)
    try:
        with time_limit() as passed:
            file = _own_file()
            for words, holds in facts(*(partial(_asked, file, n) for n in names)):
                print("✓" if holds else "✗", words)
        if passed:
            print(f"✗ {name} takes too long: {ENDLESS}")
    except CheckError as error:
        print("✗", error)
    except Exception as error:  # of a fact, which what a function has returned does not fit
        said = f"{type(error).__name__}: {error}"
        print(f"✗ what is returned fits no fact about {', '.join(names)}: {said}")


def show(name, anyway=False):
    """The package's source for a part of ``own.py``, folded, where the reader's own is right.

    Otherwise a line on what is missing.

    Args:
        name: of the part.
        anyway: show it in any case.
    """
    part = _part_with(name)
    missing = "" if anyway else _missing(part)
    if missing:
        line = (
            f"The package's is shown once yours is right: {missing}. "
            f'To see it now: `show("{name}", anyway=True)`'
        )
        return Shown(line, line)
    source = source_of(*(FUNCTIONS[function] for function in part.functions))
    summary = f"<summary>the package's <code>{name}</code></summary>"
    return Shown(f"<details>{summary}\n\n{source.markdown}\n\n</details>", source.plain)


def _missing(part):
    """What there is to do until the reader's functions of a part are right; empty if they are."""
    name = part.functions[0]
    try:
        with time_limit():  # which running the file turns into a CheckError
            file = _own_file()
    except CheckError as error:
        return str(error)
    return {
        RIGHT: "",
        TO_DO: _still_to_be_written(name, file),
        WRONG: f"`minitransformer check own {name}` says what is wrong",
    }[check_part(file, part).status]


def _own_file():
    given = os.environ.get("MINITRANSFORMER_OWN")
    paths = [Path(given)] if given else [Path("answers/own.py"), Path("../answers/own.py")]
    for path in paths:
        if path.is_file():
            return OwnFile(path)
    if given:
        raise CheckError(f"there is no file {given}, which MINITRANSFORMER_OWN names")
    raise CheckError(
        f"there is no file {paths[0]}; `cp -r lessons/exercises answers` in the project's folder "
        "makes it"
    )


def _part_with(name):
    for part in parts_of("own"):
        if name in part.functions:
            return part
    raise ValueError(f"own.py has no function {name!r}{did_you_mean(name, FUNCTIONS)}")


def _asked(file, name, *arguments, **options):
    """What a function of a reader's file returns, called as its check calls it."""
    function = file.there.get(name, not_there)
    answer = Answer(name, partial(function, **options))
    is_pair = f"{name}_backward" in FUNCTIONS
    try:
        if name == "adam_update":  # the one that writes to what it is given
            return answer.writing(*arguments)
        return answer.y_and_cache(*arguments) if is_pair else answer(*arguments)
    except CheckError as error:
        if isinstance(error.__cause__, NotImplementedError):
            raise CheckError(_still_to_be_written(name, file)) from error
        raise


def _still_to_be_written(name, file):
    return f"{name} is still to be written, in {file.path.as_posix()}"


def shape_table(sizes, **rows):
    """A table of arrays, their shapes in symbols and in numbers, and what they are.

    Args:
        sizes: the number for each symbol, ``{"B": 2, "T": 5, "D": 8}``.
        rows: for each name ``(array, "B T D", meaning)``; a scalar's shape is ``""``.

    Raises:
        ValueError: an array does not have the shape that its symbols say.
    """
    table = [("array", "shape", "here", "what it is")]
    for name, (array, symbols, meaning) in rows.items():
        shape = tuple(sizes[s] if s in sizes else int(s) for s in symbols.split())
        if array.shape != shape:
            raise ValueError(
                f"{name} should be ({', '.join(symbols.split())}) = {shape}, and is {array.shape}"
            )
        table.append((f"`{name}`", _tuple(symbols.split()), _tuple(shape), meaning))
    table.insert(1, ("---",) * 4)
    markdown = "\n".join(f"| {' | '.join(row)} |" for row in table)
    return Shown(markdown, markdown)


def _tuple(items):
    return f"({', '.join(map(str, items))})"
