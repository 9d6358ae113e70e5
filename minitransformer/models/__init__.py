"""Whole models, built of the layers: what all of them are, and an architecture a file."""
