"""One file for each command: ``add`` describes its arguments, ``run`` does it."""
