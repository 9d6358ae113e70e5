"""Checkpoints: what a training leaves on disk, written whole or not at all, read without trust.

    arrays, state = load_checkpoint(path)

A file of arrays and JSON (``file``); the arrays of a model in it (``arrays``); what that model is
bound to (``binding``); the folder in which a run keeps several (``folder``).
"""
