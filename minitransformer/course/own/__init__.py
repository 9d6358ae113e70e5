"""A learner's own Transformer: functions of one file stand in for those of the package.

    with own("answers/own.py") as mine:
        model = Transformer(config)                 # runs on what is written there
        ...
        print(mine.used, mine.others)

The file is ``lessons/exercises/own.py``, filled in; ``exercises/own/`` says how each of its parts
is checked, and ``minitransformer train toy --own FILE`` trains on it. What runs is asked of the one
registry that twins stand in (``core/twins.py``).
"""

from minitransformer.course.own.file import OwnFile, own

__all__ = ["OwnFile", "own"]
