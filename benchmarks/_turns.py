"""Two steps of one process that take turns: ours, and PyTorch's with the same numbers."""

from time import perf_counter

TOLERANCE = 1e-4  # of two gradients in float32, of the largest entry


def beside(ours, theirs, blocks, block):
    """Times of our step and PyTorch's, ready for JSON; arguments as for :func:`alternate`."""
    seconds = alternate(ours, theirs, blocks, block)
    our_seconds, torch_seconds = (
        sum(side) / (blocks * block) for side in zip(*seconds, strict=True)
    )
    return {
        "seconds": our_seconds,
        "torch_seconds": torch_seconds,
        "ratio": torch_seconds / our_seconds,
        "ratio_of_blocks": [theirs / ours for ours, theirs in seconds],
    }


def require_same(layer, ours, theirs):
    """End the script where a gradient of the layer differs: the speed would mean nothing.

    Args:
        layer: its name.
        ours, theirs: gradients by name; of ours there may be more.
    """
    for name, expected in theirs.items():
        error = abs(ours[name] - expected).max() / abs(expected).max()
        if not error <= TOLERANCE:
            raise SystemExit(
                f"{layer}: the gradient of {name} differs by {error:.1e} of its largest entry, "
                f"and {TOLERANCE:.0e} is allowed"
            )


def in_words(row):
    """The ratio of :func:`beside`, and those of its blocks."""
    ratios = row["ratio_of_blocks"]
    return f"{row['ratio']:6.2f} (blocks: {min(ratios):.2f} to {max(ratios):.2f})"


def alternate(first, second, blocks, block):
    """Seconds of each block of steps, as [(of first, of second)]; who begins changes.

    Args:
        first, second: the steps, called without arguments.
        blocks: how many turns each has, after one that warms up.
        block: steps that are taken in a row.
    """
    seconds = []
    for i in range(blocks + 1):
        order = (first, second) if i % 2 == 0 else (second, first)
        taken = [seconds_of(step, block) for step in order]
        seconds.append(tuple(taken if i % 2 == 0 else taken[::-1]))
    return seconds[1:]


def seconds_of(step, times=1):
    """How long so many steps take."""
    start = perf_counter()
    for _ in range(times):
        step()
    return perf_counter() - start
