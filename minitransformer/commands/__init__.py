"""The command line (``cli.py``), a command a file: ``add`` describes it, ``run`` does it."""
