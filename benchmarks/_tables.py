"""Tables of results in Markdown."""

import statistics


def markdown(lines):
    """Lines of cells as a table; the second line is the rule."""
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def spread(values, digits):
    """Mean and, of several values, the standard deviation of such a value."""
    mean = f"{statistics.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{digits}f}"
