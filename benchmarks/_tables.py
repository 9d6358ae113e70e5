"""Tables of results in Markdown."""


def markdown(lines):
    """Lines of cells as a table; the second line is the rule."""
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
