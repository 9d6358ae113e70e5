"""Training: the optimizer of the paper."""
