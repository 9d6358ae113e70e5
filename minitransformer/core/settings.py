"""Settings: frozen dataclasses of what a recipe and the command line may say.

    momentum: float = share(0.0)

Each field has a default, says beside it which values make sense, and is described under
``Attributes:`` of its class: ``--help`` has that from there.
"""

import math
from dataclasses import dataclass, field, fields

from minitransformer.core.errors import require

FINITE = "be finite", lambda x: x < math.inf


def positive(default):
    """A field that is above 0."""
    return _bounded(default, ("be > 0", lambda x: x > 0), FINITE)


def not_negative(default, *others):
    """A field that is 0 or above, and what ``others`` say, by default that it is finite."""
    return _bounded(default, ("be >= 0", lambda x: x >= 0), *(others or [FINITE]))


def share(default):
    """A field that is a part of a whole, and never all of it."""
    return _bounded(default, ("lie in 0 <= {} < 1", lambda x: 0 <= x < 1))


def at_most(limit):
    """One of the ``others`` of :func:`not_negative`."""
    return f"be {limit} at most", lambda x: x <= limit


def _bounded(default, *bounds):
    return field(default=default, metadata={"bounds": bounds})


@dataclass(frozen=True)
class Settings:
    """The base of those, which has none.

    Raises:
        InputError: a field makes no sense.
    """

    def __post_init__(self):
        for f in fields(self):
            value = getattr(self, f.name)
            for words, holds in f.metadata.get("bounds", ()):
                require(holds(value), f"{f.name}={value!r} must {words.format(f.name)}")

    def require_sense(self):
        """Raise an InputError where fields do not go together."""
