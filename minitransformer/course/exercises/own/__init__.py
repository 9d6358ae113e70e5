"""The learner's own Transformer, ``lessons/exercises/own.py``: how each of its parts is checked."""

from minitransformer.course.exercises.own import (
    attention,
    blocks,
    layers,
    learning,
    probabilities,
    search,
)

PLACES = layers, probabilities, attention, blocks, learning, search  # of the parts of a lesson
