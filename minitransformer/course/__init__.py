"""The exercises and their checks, the functions a learner writes, what the notebooks share."""
