"""The rows of the battery: a pair that is right, and slips of the pen that make it wrong.

A slip is told as what was written in place of what: ``{"y * (1 - y)": "y"}`` is the right backward
with that one change to its text. Where a slip is more than that, a whole backward stands there.
"""

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from minitransformer.gradcheck import check_module, check_pair
from minitransformer.gradcheck.modules import module_pair


@dataclass(frozen=True, eq=False)
class Right:
    """A backward that is the derivative of its forward.

    Attributes:
        name: what it is, and what is special about it.
        forward, backward: as for ``check_pair``.
        inputs: from a NumPy generator, the tuple of inputs.
        verdict: what may be said of it: "right", or "cannot be told" where the rounding noise of
            forward hides the gradient and nobody could know.
        names: of the inputs, where they are not those of ``forward``'s parameters.
    """

    name: str
    forward: Callable
    backward: Callable
    inputs: Callable
    verdict: str = "right"
    names: tuple | None = None

    def check(self, seed=0):
        return _check(self.forward, self.backward, self.inputs, self.names, seed)

    def pair(self, rng):
        """forward, backward, inputs and names, as ``check_pair`` takes them."""
        return self.forward, self.backward, self.inputs(rng), self.names

    def __str__(self):
        return self.name


@dataclass(frozen=True, eq=False)
class Wrong:
    """A backward with a slip.

    Attributes:
        right: what it should have been.
        slip: the changed texts of the right backward, {was: is}, or a whole backward.
        wrong: the gradients that are wrong, in one string, and no others.
        tag: which kind of slip it is, a key of ``battery.says.SAYS``.
        truth: what was done wrong, in a few words.
        forward, inputs: where they are not those of the right pair.
    """

    right: Right
    slip: dict | Callable
    wrong: str
    tag: str
    truth: str
    forward: Callable | None = None
    inputs: Callable | None = None

    @cached_property
    def backward(self):
        return slipped(self.right.backward, self.slip) if isinstance(self.slip, dict) else self.slip

    def check(self, seed=0):
        forward, inputs = self.forward or self.right.forward, self.inputs or self.right.inputs
        return _check(forward, self.backward, inputs, self.right.names, seed)

    def __str__(self):
        return f"{self.right}: {self.truth}"


@dataclass(frozen=True, eq=False)
class RightModule:
    """As Right; ``module`` makes a Module from a NumPy generator."""

    name: str
    module: Callable
    inputs: Callable
    verdict: str = "right"

    def check(self, seed=0):
        return _check_module(self.module, self.inputs, seed)

    def pair(self, rng):
        """As that of Right, of the module as it was made."""
        return module_pair(self.module(rng), self.inputs(rng))

    def __str__(self):
        return self.name


@dataclass(frozen=True, eq=False)
class WrongModule:
    """As Wrong; ``module`` makes a Module from a NumPy generator."""

    right: RightModule
    module: Callable
    wrong: str
    tag: str
    truth: str

    def check(self, seed=0):
        return _check_module(self.module, self.right.inputs, seed)

    def __str__(self):
        return f"{self.right}: {self.truth}"


def _check(forward, backward, inputs, names, seed):
    values = inputs(np.random.default_rng((seed, 1)))
    return check_pair(forward, backward, values, names=names, seed=seed)


def _check_module(module, inputs, seed):
    rng = np.random.default_rng((seed, 1))
    return check_module(module(rng), *inputs(rng), seed=seed)


def slipped(function, changes):
    """The function with some of its text changed, {was: is}; each was must stand there once."""
    source = textwrap.dedent(inspect.getsource(function))
    for was, now in changes.items():
        if source.count(was) != 1:
            raise ValueError(f"{was!r} stands {source.count(was)} times in\n{source}")
        source = source.replace(was, now)
    defined = {}
    code = compile(source, f"<{function.__name__} with a slip>", "exec")
    exec(code, function.__globals__, defined)
    return defined[function.__name__]


def normal(*shapes):
    """Inputs of these shapes, normally distributed."""
    return lambda rng: tuple(rng.standard_normal(shape) for shape in shapes)


def positive(*shapes):
    """Inputs of these shapes between 0.3 and 2."""
    return lambda rng: tuple(rng.uniform(0.3, 2, shape) for shape in shapes)


def away(*shapes):
    """Inputs of these shapes, at least 0.1 away from 0, of either sign."""
    return lambda rng: tuple(
        rng.choice([-1.0, 1.0], shape) * rng.uniform(0.1, 2, shape) for shape in shapes
    )


def apart(*shapes):
    """Inputs of these shapes whose entries differ from each other by 0.05 at least."""

    def inputs(rng):
        return tuple(_apart(shape, rng) for shape in shapes)

    return inputs


def _apart(shape, rng):
    ranks = rng.permutation(np.prod(shape)).reshape(shape)
    return (ranks + rng.uniform(0, 0.5, shape)) * 0.1 - 0.05 * np.prod(shape)
