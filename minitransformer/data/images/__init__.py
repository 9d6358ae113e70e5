"""Pictures with classes: from files, and a generator of its own, to augmented batches of arrays."""
