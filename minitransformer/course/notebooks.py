"""What the lessons share: the look of their plots, tables of shapes, and source code.

use_style()
shape_table({"B": 2, "T": 5, "D": 8}, x=(x, "B T D", "the input"))
source_of(check_pair)
"""

import inspect
import textwrap

from minitransformer.core.libraries import library

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
