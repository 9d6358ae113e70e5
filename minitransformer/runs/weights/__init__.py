"""Weights of others: a file for each format, which says of which model and by which of our names.

Nothing in such a file is trusted: sizes are compared before memory is taken.
"""
