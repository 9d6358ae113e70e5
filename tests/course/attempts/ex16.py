import numpy as np


def found_on_a_grid(right, n, z):
    p = np.linspace(0, 1, 2_000_001)
    inside = p[abs(right / n - p) <= z * np.sqrt(p * (1 - p) / n) + 1e-12]
    return inside[0], inside[-1]


BOTH = "middle - half, middle + half"
OF_THE_MEASURED = "middle = (r + c / 2) / (1 + c) -> middle = r && + c**2 / 4) / (1 + c) -> )"

WRONG = r"""
plausible_shares
    $OF_THE_MEASURED || standard error of the measured share r
    $OF_THE_MEASURED && $BOTH -> np.clip([middle - half, middle + half], 0, 1) || measured share r
    $BOTH -> middle + half, middle - half || ends swapped
    z**2 / n\n -> 4 / n\n || (11, 30, 1.5)
    $BOTH -> middle || should have (2,)
best_temperature
    return 1 / np -> return np || and 1 divided by it would be right
    z = -> labels = logits.argmax(axis=-1)\n    z = || the loss least there
    return 1 / np -> return 1.03 / np || the loss least there
    lambda logits, labels: np.nan || subtract the row's largest
    - logits.max(axis=-1, keepdims=True) -> || exp of a large number overflows
"""
RIGHT = """
plausible_shares
    found_on_a_grid
"""
