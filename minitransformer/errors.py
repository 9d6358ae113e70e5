"""What the errors of the package have in common that a user, not a programmer, can mend."""


def in_words(error):
    """What an exception says; of an OSError which file, if that is known, and what is wrong."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


class ExplainedError(Exception):
    """Its message says what is wrong and what to do.

    The command line prints it, like a ValueError's, in one line and without a traceback.
    """
