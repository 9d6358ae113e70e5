"""The learner's own Transformer, ``lessons/exercises/own.py``: how each of its parts is checked."""

from minitransformer.course.exercises.own import (
    attention,
    blocks,
    layers,
    learning,
    momentum,
    pictures,
    probabilities,
    search,
    since_2017,
)

# Of the parts of a lesson; the last three are the second part of the file.
PLACES = layers, probabilities, attention, blocks, learning, search, since_2017, pictures, momentum
