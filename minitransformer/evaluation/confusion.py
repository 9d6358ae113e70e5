"""What is taken for what: from counts (classes, said) to precision, recall and F1 of each class."""

import numpy as np


def shares(counts):
    """Precision, recall and F1 of each class, of counts (classes, said); 0 where there is none."""
    right = counts.diagonal()
    said, there = counts.sum(axis=0), counts.sum(axis=1)
    precision, recall = right / np.maximum(said, 1), right / np.maximum(there, 1)
    return precision, recall, 2 * right / np.maximum(said + there, 1)


def lines_of_classes(names, counts, heading="class"):
    """A table as lines: of each class its name, precision, recall, F1, and how many there are."""
    width = max([20, *map(len, names)])
    rows = zip(names, *shares(counts), counts.sum(axis=1), strict=True)
    return [
        f"{heading:<{width}}precision  recall      F1    count",
        *(
            f"{name:<{width}}{precision:9.4f}{recall:8.4f}{f1:8.4f}{count:9,}"
            for name, precision, recall, f1, count in rows
        ),
    ]
