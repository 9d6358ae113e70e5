"""Parallel text, vocabulary and batches: everything between files of sentences and id arrays."""
