"""Settings: frozen dataclasses of what a recipe, the command line and a run folder may say.

    momentum: float = share(0.0)

Each field says its type and, beside its default, which values make sense, and is described under
``Attributes:`` of its class: ``--help`` has that from there. A whole number of which no more is
said is counted, so it is 1 or more.
"""

import math
from dataclasses import dataclass, field, fields
from functools import cache
from numbers import Integral, Real
from typing import get_type_hints

from minitransformer.core.errors import listed, require, require_one_of

TYPES = {  # what a field of each type takes, and what that is called
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "text"),
    bool: (bool, "True or False"),
    dict: (dict, "a dict"),
}


def positive(default, *others):
    """A field that is above 0, and what ``others`` say, by default that it is finite."""
    return _bounded(default, ABOVE_0, *(others or [FINITE]))


def not_negative(default, *others):
    """A field that is 0 or above, and what ``others`` say, by default that it is finite."""
    return _bounded(default, ("be >= 0", lambda x: x >= 0), *(others or [FINITE]))


def id_or_none(default):
    """A field that is an id, or -1 for none."""
    return _bounded(default, ("be >= -1", lambda x: x >= -1), FINITE)


def share(default):
    """A field that is a part of a whole, and never all of it."""
    return _bounded(default, ("lie in 0 <= {} < 1", lambda x: 0 <= x < 1))


def one_of(choices, default):
    """A field that is one of the names in ``choices``."""
    return field(default=default, metadata={"choices": choices})


def at_most(limit):
    """One of the ``others`` of :func:`positive` and :func:`not_negative`."""
    return f"be {limit} at most", lambda x: x <= limit


ABOVE_0 = "be > 0", lambda x: x > 0
FINITE = "be finite", lambda x: x < math.inf
COUNTED = ABOVE_0, at_most(2**31 - 1)


def _bounded(default, *bounds):
    return field(default=default, metadata={"bounds": bounds})


@dataclass(frozen=True)
class Settings:
    """The base of those, which has none.

    Raises:
        InputError: a field is of another type, or makes no sense.
    """

    def __post_init__(self):
        types = types_of(type(self))
        for f in fields(self):
            value, kind = getattr(self, f.name), types[f.name]
            if "choices" in f.metadata:
                require_one_of(f.metadata["choices"], f.name, value)
                continue
            require_kind(f.name, value, kind)
            for words, holds in f.metadata.get("bounds", COUNTED if kind is int else ()):
                require(holds(value), f"{f.name}={value!r} must {words.format(f.name)}")

    def require_sense(self):
        """Raise an InputError where fields do not go together."""


@cache  # a recipe is made field by field, and whoever gives a command waits for it
def types_of(settings):
    """The types of the fields of a Settings class, by name; in the file they may be strings."""
    return get_type_hints(settings)


def require_kind(name, value, kind):
    """Raise an InputError unless a field of the type ``kind`` takes the value."""
    if kind not in TYPES:
        raise TypeError(f"{name} is of {kind}; give one of {listed(k.__name__ for k in TYPES)}")
    of, words = TYPES[kind]
    fits = isinstance(value, of) and (kind is bool or not isinstance(value, bool))
    require(fits, f"{name}={value!r:.80} must be {words}")
