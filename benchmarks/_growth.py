"""How costs grow, and the cost that no clock shows."""

import math
import statistics
import tracemalloc


def exponent(values, costs):
    """The e of cost ~ valueᵉ that fits best."""
    logs = [[math.log(number) for number in numbers] for numbers in (values, costs)]
    return statistics.linear_regression(*logs).slope


def peak(run):
    """The most bytes that ``run()`` holds at a time, beside what was there before."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
