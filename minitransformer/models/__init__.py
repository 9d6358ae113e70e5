"""Whole models, built of the layers: what all of them are, and an architecture a file.

``n_gram.py`` is none of them: it is the baseline of all, counted and not trained.
"""
