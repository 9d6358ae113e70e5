"""One function, several bodies: the readable reference, a faster twin of it, and yours.

A layer file marks what may have a twin; ``accelerate/`` holds the twins and registers them:

    @twinned                                        in layers/layer_norm.py
    def layer_norm(x, gamma, beta): ...

    layer_norm.twins.setdefault("numpy", Twin(forward, backward))   in accelerate/cpu/layer_norm.py

Twins are asleep until somebody asks for speed: ``with accelerated():`` wakes those of the library
that the arrays belong to. Whoever reads a layer, prints its cache or checks its gradient therefore
meets the reference, and nothing else. ``accelerate/`` is imported when they are first woken, and
leaves alone what you have registered by then.

In the same place functions of a learner stand in, ``with own("own.py"):`` (``course/own/``).
Meanwhile all twins sleep, as one of a composite would bypass what is within it.
"""

from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import wraps
from importlib import import_module
from typing import NamedTuple

from minitransformer.core.errors import InputError

_awake = ContextVar("twins are awake", default=False)
_own = ContextVar("who knows a learner's functions", default=None)


class Twin(NamedTuple):
    """A pair with the signatures of the reference, but a cache of its own: faster, or yours.

    Attributes:
        forward: what runs in place of the reference.
        backward: what takes the cache of ``forward``; None for a function that has no backward.
        weights: of an attention, what reads its weights in the cache of ``forward``.
    """

    forward: Callable
    backward: Callable | None = None
    weights: Callable | None = None


class TwinCache(NamedTuple):
    """The cache of a twin, which alone can read it.

    Attributes:
        of: the name of the backward that it is to be given to. A reference may hand on the cache
            of a twin within it as its own; that is not a cache of its own twin.
    """

    of: str
    twin: Twin
    cache: object


@contextmanager
def accelerated(awake=True, precision="float32"):
    """Use the twins inside the ``with``, or with ``awake=False`` the references.

    It holds for the thread it is entered in. A cache made by a twin goes to the twin's backward,
    wherever that is called.

    Args:
        precision: of the twins' matrix products on a GPU.

    Raises:
        ValueError: there is no such precision.
    """
    of_products = nullcontext()
    if awake:
        of_products = import_module("minitransformer.accelerate").matmul_precision(precision)
    token = _awake.set(awake)
    try:
        with of_products:
            yield
    finally:
        _awake.reset(token)


@contextmanager
def standing_in(own):
    """Inside, ``own.twin_of(f)`` is asked for each function ``f`` that is called.

    It holds for the thread it is entered in.

    Args:
        own: what answers with a Twin, or None to let the reference run. None itself is nobody: so
            the references run, whoever stood in before.
    """
    tokens = _own.set(own), _awake.set(False)
    try:
        yield
    finally:
        _awake.reset(tokens[1])
        _own.reset(tokens[0])


def stands_in():
    """Who stands in here, as given to :func:`standing_in`, or None."""
    return _own.get()


def twinned(reference):
    """Mark a function ``f`` or its ``f_backward``, or the two methods of a Module, for twins.

    They are called by position, as far as that goes: names of arguments are the learner's own.

    Attribute ``twins``: a Twin for each array library that has one, by the library's name; that of
    the first argument counts.
    """
    name = f"{reference.__module__}.{reference.__qualname__}"
    backward_name = f"{name}_backward"
    if name.endswith(".forward"):
        backward_name = name.removesuffix("forward") + "backward"

    names = reference.__code__.co_varnames[: reference.__code__.co_argcount]

    @wraps(reference)
    def call(*args, **kwargs):
        if kwargs:
            args = _by_position(names, args, kwargs)
        if args and isinstance(args[-1], TwinCache) and args[-1].of == name:
            *gradients, (_, twin, cache) = args
            return twin.backward(*gradients, cache)
        if (own := _own.get()) is not None:
            twin = own.twin_of(call)
        else:
            twin = call.twins.get(_library(args[0])) if args and _awake.get() else None
        if twin is None:
            return reference(*args, **kwargs)
        if twin.backward is None:
            return twin.forward(*args, **kwargs)
        y, cache = twin.forward(*args, **kwargs)
        return y, TwinCache(backward_name, twin, cache)

    call.twins = {}
    return call


def _by_position(names, args, kwargs):
    """``args`` and those that follow by their names, which are taken out of ``kwargs``."""
    args = list(args)
    for name in names[len(args) :]:
        if name not in kwargs:
            break
        args.append(kwargs.pop(name))
    return args


def reads_weights(reference):
    """Mark a function, or a method of a Module, that reads attention weights in a cache.

    In that of a twin the twin itself reads them.

    Raises:
        InputError: in a call of it, the twin does not tell them, as a learner's function does not.
    """

    @wraps(reference)
    def read(*args):
        *_, cache = args
        if not isinstance(cache, TwinCache):
            return reference(*args)
        if cache.twin.weights is None:
            raise InputError(
                "where a function of yours looks is known to it alone; look with the package's: "
                "cross_attention(model, source, target) of minitransformer.decoding"
            )
        return cache.twin.weights(cache.cache)

    return read


def _library(x):
    """``"numpy"`` or ``"cupy"`` for their arrays."""
    return type(x).__module__.partition(".")[0]
