"""Training: recipes, the loop over batches, the optimizer and schedule of the paper, progress."""
