"""Attempts at the exercises: a file for each exercise, as ``lessons/solutions/`` has.

``WRONG`` has, by the function that is attempted, rows of an answer and what must be said of it.
``RIGHT`` has answers that are right and not written as in the solution; of some there is a note.

An answer is what is written in the solution in place of what, ``{"dx / c": "dx * c"}``; each text
must stand once in that function. An answer that is no change of the solution is a function.
"""
