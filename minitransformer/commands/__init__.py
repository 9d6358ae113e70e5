"""One file for each command: ``add`` describes it to its parser, ``run`` does it."""

INTERRUPTED = 130  # exit status, what a shell reports of a command that Ctrl-C ended
