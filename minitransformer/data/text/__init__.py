"""Texts in pairs, alone and with labels: all between files of sentences and batches of ids."""
