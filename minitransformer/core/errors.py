"""What the errors of the package have in common that a user, not a programmer, can mend."""

from numbers import Integral


def in_words(error):
    """What an exception says; of an OSError which file, if that is known, and what is wrong."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


class ExplainedError(Exception):
    """Its message says what is wrong and what to do.

    The command line prints it in one line, without a traceback.
    """


class InputError(ExplainedError, ValueError):
    """What a user has given or chosen makes no sense."""


class DivergedError(ExplainedError, FloatingPointError):
    """The model gives NaN or infinite numbers."""


def require_whole(name, value, least=1):
    """Raise an InputError unless ``value`` is a whole number, ``least`` or more."""
    if not isinstance(value, Integral) or value < least:
        raise InputError(f"{name}={value!r} must be a whole number, {least} or more")
