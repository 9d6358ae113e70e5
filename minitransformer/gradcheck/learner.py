"""A learner's own pair of functions, found in a file by name: ``my_file.py:my_norm``.

The file defines

    my_norm(*inputs) -> (y, cache)
    my_norm_backward(dy, cache) -> gradients, in the order of the inputs, None for what has none
    my_norm_inputs(rng) -> inputs, a tuple of float64 arrays; integers, booleans and strings pass
"""

import difflib
import linecache
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

from minitransformer.core.regular_file import read_regular
from minitransformer.gradcheck.check import check_pair
from minitransformer.gradcheck.pair import call
from minitransformer.gradcheck.report import CheckError

MOST = 10**6  # bytes of a file
PARTS = {  # of a pair: what follows its name, and what to write where that is missing
    "": "",
    "_backward": "; write one: from (dy, cache) to the gradients",
    "_inputs": "; write one: from (rng), a NumPy generator, to the inputs, a tuple",
}


def check_file(place, seed=0, **options):
    """Check the pair at ``place``, ``"my_file.py:my_norm"``; returns a Report.

    Args:
        seed, options: as for :func:`check_pair`; the inputs are drawn from the seed, too.

    Raises:
        CheckError: the file or one of the three functions is missing or fails.
    """
    path, _, name = place.rpartition(":")
    module = load_file(Path(path))
    forward, backward, make_inputs = (_function(module, path, name, part) for part in PARTS)
    inputs = call(f"{name}_inputs", make_inputs, np.random.default_rng(seed))
    if inputs is None:
        raise CheckError(f"{name}_inputs returned None: is its `return` missing?")
    if isinstance(inputs, dict):
        raise CheckError(f"{name}_inputs returned a dict: return a tuple of its values")
    return check_pair(forward, backward, inputs, seed=seed, **options)


def load_file(path):
    """The file at ``path``, a Path, as a module.

    Raises:
        CheckError: it is missing, is no Python file, or fails.
    """
    return run_file(path, content_of(path))


def content_of(path):
    """What is in the file at ``path``, a Path, as bytes.

    Raises:
        CheckError: it is missing, or no Python file.
    """
    if path.suffix != ".py":
        raise CheckError(f"{path} is no Python file")
    try:
        return read_regular(path, MOST)
    except FileNotFoundError as error:
        raise CheckError(f"there is no file {path}") from error
    except OSError as error:
        raise CheckError(f"{path} cannot be read: {error}") from error


def run_file(path, content):
    """The module that ``content``, bytes, of the file at ``path`` makes.

    It is compiled anew, whatever bytecode is beside it: that may be of another text, as may be the
    lines that are kept of the file for messages.

    Raises:
        CheckError: it fails.
    """
    module = ModuleType(f"learner_{path.stem}")
    module.__file__ = str(path)
    linecache.checkcache(str(path))
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)  # so that it can import the files beside it
    sys.modules[module.__name__] = module  # dataclasses look their module up there
    try:
        code = call(f"importing {path}", compile, content, str(path), "exec")
        call(f"importing {path}", exec, code, vars(module))
    finally:
        sys.path.remove(folder)
    return module


def did_you_mean(name, names):
    """``; did you mean soft_max?`` for a misspelt name, empty if none is like it.

    Two backwards are no more alike for their common ending.
    """

    def likeness(other):
        both = (other, name)
        if all(n.endswith("_backward") for n in both):
            both = (n.removesuffix("_backward") for n in both)
        return difflib.SequenceMatcher(None, *both).ratio()

    nearest = max(names, key=likeness, default=None)
    return f"; did you mean {nearest}?" if nearest and likeness(nearest) >= 0.6 else ""


def _function(module, path, name, part):
    function = getattr(module, name + part, None)
    if not callable(function):
        of_this = f"{name}_" if part else ""  # another layer's backward is not meant
        functions = [n for n, f in vars(module).items() if callable(f) and n.startswith(of_this)]
        hint = did_you_mean(name + part, functions)
        raise CheckError(f"{path} defines no function {name + part}{hint or PARTS[part]}")
    return function
