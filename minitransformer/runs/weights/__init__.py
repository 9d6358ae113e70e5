"""Weights of others: a file for each format, and ``names.py`` for what they call our arrays.

Nothing that is read is trusted: sizes are compared before memory is taken.
"""
