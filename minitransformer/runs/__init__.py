"""A run on disk: its folder, log, lock and checkpoints."""
