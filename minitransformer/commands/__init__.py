"""One file for each command: ``add`` describes it to its parser, ``run`` does it."""
