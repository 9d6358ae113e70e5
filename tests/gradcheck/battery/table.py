"""The rows of the battery: a pair that is right, and slips of the pen that make it wrong.

A slip is told as what was written in place of what: ``{"y * (1 - y)": "y"}`` is the right backward
with that one change to its text. Wrong are then the gradients that differ from those of the right
one, and no others.
"""

import inspect
import linecache
import math
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from minitransformer.gradcheck import check_module, check_pair
from minitransformer.gradcheck.modules import module_pair
from minitransformer.gradcheck.pair import Pair, argument_names, positions_to_check
from minitransformer.gradcheck.trial import gradient_name


@dataclass(frozen=True, eq=False)
class Right:
    """A backward that is the derivative of its forward.

    Attributes:
        name: what it is, and what is special about it.
        forward, backward: as for ``check_pair``.
        inputs: from a NumPy generator, the tuple of inputs.
    """

    name: str
    forward: Callable
    backward: Callable
    inputs: Callable

    def check(self, seed=0):
        rng = np.random.default_rng((seed, 1))
        return check_pair(self.forward, self.backward, self.inputs(rng), seed=seed)

    def pair(self, rng):
        """forward, backward, inputs and names, as ``check_pair`` takes them."""
        return self.forward, self.backward, self.inputs(rng), None

    def gradients(self):
        """What backward returns for each input, by the gradient's name, on some inputs and dy."""
        rng = np.random.default_rng(1)
        forward, backward, inputs, names = self.pair(rng)
        names = names or argument_names(forward, len(inputs))
        pair = Pair(forward, backward, names, positions_to_check(inputs, names), math.inf)
        y, (_, cache) = pair.forward(inputs)
        found = pair.backward(rng.standard_normal(y.shape), cache)
        return {gradient_name(name): gradient for name, gradient in found.items()}

    def with_slip(self, slip):
        """The same with the changed texts of its backward."""
        return replace(self, backward=slipped(self.backward, slip))

    def with_slips(self, *rows):
        """The right one and those that slips make of it, each a row: all that a Wrong has."""
        return [self, *(Wrong(self, *row) for row in rows)]

    def __str__(self):
        return self.name


def right(name, forward, inputs):
    """The Right of a forward and of the function beside it whose name ends in ``_backward``."""
    backward = getattr(sys.modules[forward.__module__], f"{forward.__name__}_backward")
    return Right(name, forward, backward, inputs)


@dataclass(frozen=True, eq=False)
class RightModule:
    """As Right; ``module`` makes a Module from a NumPy generator, and a slip is in its class."""

    name: str
    module: Callable
    inputs: Callable

    def check(self, seed=0):
        rng = np.random.default_rng((seed, 1))
        return check_module(self.module(rng), *self.inputs(rng), seed=seed)

    def pair(self, rng):
        """As that of Right, of the module as it was made."""
        return module_pair(self.module(rng), self.inputs(rng))

    def with_slip(self, slip):
        return replace(self, module=slipped(self.module, slip))

    gradients = Right.gradients
    with_slips = Right.with_slips
    __str__ = Right.__str__


@dataclass(frozen=True, eq=False)
class Wrong:
    """A pair or a module with a slip.

    Attributes:
        right: what it should have been.
        slip: the changed texts of the right one, {was: is}.
        tag: which kind of slip it is, a key of ``battery.says.SAYS``.
        says: what is said of one of them; empty where all that SAYS allows will do.
    """

    right: Right | RightModule
    slip: dict
    tag: str
    says: str = ""

    def check(self, seed=0):
        return self.right.with_slip(self.slip).check(seed)

    def wrong(self):
        """The names of the gradients that are not those of the right one."""
        right, given = self.right.gradients(), self.right.with_slip(self.slip).gradients()
        return {name for name in right if not same(given[name], right[name])}

    def __str__(self):
        return f"{self.right}: {', '.join(f'{was!r} → {now!r}' for was, now in self.slip.items())}"


def same(a, b):
    """Whether two gradients, or None and None, are equal but for rounding."""
    if a is None or b is None:
        return a is b
    return a.shape == b.shape and bool(np.abs(a - b).max() <= 1e-9 * np.abs(b).max())


def slipped(function, changes):
    """A function or class with some of its text changed, {was: is}; each was must be there once."""
    source = textwrap.dedent(inspect.getsource(function))
    for was, now in changes.items():
        if source.count(was) != 1:
            raise ValueError(f"{was!r} stands {source.count(was)} times in\n{source}")
        source = source.replace(was, now)
    defined, name = {}, f"<{function.__name__} with {changes}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name  # as in doctest
    code = compile(source, name, "exec")
    exec(code, vars(sys.modules[function.__module__]), defined)
    return defined[function.__name__]


def normal(*shapes, beside=()):
    """Inputs of these shapes, normally distributed, and others as they are, such as ids."""
    return lambda rng: (*(rng.standard_normal(shape) for shape in shapes), *beside)


def positive(*shapes):
    """Inputs of these shapes between 0.3 and 2."""
    return lambda rng: tuple(rng.uniform(0.3, 2, shape) for shape in shapes)


def away(*shapes):
    """Inputs of these shapes, at least 0.1 away from 0, of either sign."""
    return lambda rng: tuple(
        rng.choice([-1.0, 1.0], shape) * rng.uniform(0.1, 2, shape) for shape in shapes
    )


def apart(shape):
    """An input of that shape whose entries differ from each other by 0.05 at least."""

    def inputs(rng):
        ranks = rng.permutation(np.prod(shape)).reshape(shape)
        return ((ranks + rng.uniform(0, 0.5, shape)) * 0.1 - 0.05 * np.prod(shape),)

    return inputs
