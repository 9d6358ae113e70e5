import numpy as np
import pytest
from _growth import exponent, peak


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_exponent_is_that_of_the_growth(power):
    assert exponent([1, 2, 5], [3 * n**power for n in (1, 2, 5)]) == pytest.approx(power)


def test_the_peak_counts_what_is_there_at_a_time():
    def run(times):
        for _ in range(times):
            np.zeros(10**6, dtype=np.uint8)

    assert peak(lambda: run(3)) == pytest.approx(10**6, rel=0.01)
    assert peak(lambda: [np.zeros(10**6, dtype=np.uint8) for _ in range(3)]) == pytest.approx(
        3 * 10**6, rel=0.01
    )
