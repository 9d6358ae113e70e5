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


def require(condition, message):
    """Raise an InputError with this message unless the condition holds."""
    if not condition:
        raise InputError(message)


def require_one_of(choices, name, value):
    """Raise an InputError unless ``value`` is one of the choices."""
    require(value in choices, f"{name}={value!r}; choose {listed(choices)}")


def listed(names):
    """Such as "'one', 'two' or 'three'"."""
    *others, last = map(repr, names)
    return f"{', '.join(others)} or {last}" if others else last


def require_whole(name, value, least=1):
    """Raise an InputError unless ``value`` is a whole number, ``least`` or more."""
    whole = isinstance(value, Integral) and value >= least
    require(whole, f"{name}={value!r} must be a whole number, {least} or more")
