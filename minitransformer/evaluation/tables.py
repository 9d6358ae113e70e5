"""Tables that a terminal shows in columns and Markdown as tables."""

import statistics


def aligned(cells):
    """Lines of cells as a table in Markdown, the first line its header; text left, numbers right.

    Args:
        cells: lists of strings, all as long; the first column is text, the others are numbers.
    """
    widths = [max(2, *map(len, column)) for column in zip(*cells, strict=True)]  # of a rule, -:
    rule = ["-" * widths[0]] + ["-" * (width - 1) + ":" for width in widths[1:]]
    header, *rows = cells
    return "\n".join(_line(row, widths) for row in (header, rule, *rows))


def _line(row, widths):
    name, *numbers = row
    padded = (f"{number:>{width}}" for number, width in zip(numbers, widths[1:], strict=True))
    return f"| {name:<{widths[0]}} | " + " | ".join(padded) + " |"


def spread(values, digits):
    """Mean and, of several values, the standard deviation of such a value."""
    mean = f"{statistics.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{digits}f}"
