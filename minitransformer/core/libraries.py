"""Libraries beside NumPy, each imported when it is first needed.

Models, their gradients, training on arrays and most exercises need NumPy alone. Text, scores,
downloads, bars, threads of the BLAS and pictures take one library each. ``pip install`` brings them
all; where one is missing, only what needs it is.
"""

import importlib

from minitransformer.core.errors import ExplainedError

INSTALLED_AS = {"PIL": "pillow"}  # what pip knows under another name


class MissingLibraryError(ExplainedError, ImportError):
    """A library cannot be imported; says what needs it and how to install it."""


def library(name, purpose):
    """The module called ``name``.

    Args:
        name: such as ``"matplotlib.figure"``.
        purpose: what needs it, the subject of the error's message.

    Raises:
        MissingLibraryError: it cannot be imported.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        package = INSTALLED_AS.get(package, package)
        raise MissingLibraryError(
            f"{purpose} needs {package}, which cannot be imported ({error}); install it: "
            f"python -m pip install {package}"
        ) from error


def imported(place):
    """What is at a place, ``"module:name"``, as a registry of names has it."""
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)


def library_if_there(name):
    """The module called ``name``, or None where it cannot be imported."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
