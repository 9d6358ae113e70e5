import numpy as np

from minitransformer.evaluation.confusion import lines_of_classes


def test_the_columns_stand_below_each_other_however_long_a_name_is():
    counts = np.array([[3, 1], [0, 4]])
    for names in (("a", "b"), ("a", "a rather long name of a class")):
        heading, *rows = lines_of_classes(names, counts)
        for column in ("precision", "recall", "F1", "count"):
            end = heading.index(column) + len(column)
            for row in rows:
                assert row[end - 1].isdigit()
                assert row[end : end + 1] in ("", " ")
