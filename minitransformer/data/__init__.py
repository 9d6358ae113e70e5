"""What models are trained on, a kind of data a folder: from files to batches of arrays."""
