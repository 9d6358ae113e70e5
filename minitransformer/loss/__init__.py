"""Losses, as pairs: the mean over the real tokens, and the gradient for what they are of."""
