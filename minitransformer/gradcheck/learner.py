"""A learner's own pair of functions, found in a file by name: ``my_file.py:my_norm``.

The file defines

    my_norm(*inputs) -> (y, cache)
    my_norm_backward(dy, cache) -> gradients, in the order of the inputs, None for what has none
    my_norm_inputs(rng) -> inputs, a tuple of float64 arrays; other arguments pass unchecked
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np

from minitransformer.gradcheck.check import check_pair
from minitransformer.gradcheck.report import CheckError


def check_file(place, seed=0):
    """Check the pair at ``place``, ``"my_file.py:my_norm"``; returns a Report.

    Raises:
        CheckError: the file or one of the three functions is missing or fails.
    """
    path, _, name = place.rpartition(":")
    module = _load(Path(path))
    forward, backward, make_inputs = (
        _function(module, name + suffix, place) for suffix in ("", "_backward", "_inputs")
    )
    try:
        inputs = make_inputs(np.random.default_rng(seed))
    except Exception as error:  # a learner's function may fail in any way
        raise CheckError(f"{name}_inputs raised {type(error).__name__}: {error}") from error
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return check_pair(forward, backward, inputs, seed=seed)


def _load(path):
    if not path.is_file():
        raise CheckError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None:
        raise CheckError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))  # so that it can import the files beside it
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever stands in the file
        raise CheckError(f"importing {path} raised {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    return module


def _function(module, name, place):
    function = getattr(module, name, None)
    if not callable(function):
        raise CheckError(f"{place.rpartition(':')[0]} defines no function {name}")
    return function
