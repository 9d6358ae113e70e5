"""What the errors of the package have in common that a user, not a programmer, can mend."""


class ExplainedError(Exception):
    """Its message says what is wrong and what to do.

    The command line prints it, like a ValueError's, in one line and without a traceback.
    """
