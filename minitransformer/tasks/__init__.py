"""What a training is about, a task a file: its data, its batches, its validation, its score."""
