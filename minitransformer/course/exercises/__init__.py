"""The exercises of the lessons: is a learner's answer right, and if not, what is wrong with it?

    print(check_exercise("ex07", globals()))       # functions defined in a notebook

and ``minitransformer check ex07`` for a file. Exercise NN has a stub to fill in,
``lessons/exercises/exNN.py``, a solution in ``lessons/solutions/``, and here ``exNN.py``, which
says how each of its parts is checked. The last one, ``own``, is a Transformer of the learner's own,
all of it.
"""

from minitransformer.course.exercises.parts import (
    ExerciseReport,
    Part,
    check_exercise,
    exercise_names,
    parts_of,
)

__all__ = ["ExerciseReport", "Part", "check_exercise", "exercise_names", "parts_of"]
