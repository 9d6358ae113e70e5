"""Check a module, which owns its parameters, as a pair of functions of inputs and parameters."""

import copy
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from minitransformer.core.backend import array_namespace, is_array
from minitransformer.core.module import Module
from minitransformer.gradcheck.check import check_pair
from minitransformer.gradcheck.diagnosis import REPLACED
from minitransformer.gradcheck.pair import argument_names, call, unheard
from minitransformer.gradcheck.report import WRONG, CheckError


def check_module(module, *inputs, seed=0, **options):
    """Check a module's backward for its inputs and each of its parameters.

    The check is made on a float64 copy whose parameters are moved away from their initial values,
    because a gain of exactly 1 hides a misplaced gain. Backward must add to the gradients, in
    place.

    Args:
        module: any Module with ``forward(*inputs) -> (y, cache)`` and ``backward(dy, cache)``.
        inputs, seed, options: as for :func:`check_pair`.
    """
    if not isinstance(module, Module):
        raise CheckError(f"expected a Module, an instance of one, and got {module!r}")
    for method in ("forward", "backward"):
        if not callable(getattr(module, method, None)):
            raise CheckError(f"{type(module).__name__} has no method {method}")
    module = call("copying it", copy.deepcopy, module)
    call("making it float64", moved_from_start, module, np.random.default_rng(seed))
    forward, backward, values, names = module_pair(copy.deepcopy(module), inputs)
    report = check_pair(forward, backward, values, names=names, seed=seed, **options)
    try:
        with unheard():
            replaced = _replaced_gradients(module, inputs)
    except CheckError:
        if report.verdict != WRONG:
            raise
        return report
    inputs_first = [False] * (len(report.tensors) - len(replaced)) + replaced
    tensors = [
        _called_replaced(tensor) if is_replaced else tensor
        for tensor, is_replaced in zip(report.tensors, inputs_first, strict=True)
    ]
    return replace(report, tensors=tensors)


def _called_replaced(tensor):
    """The TensorReport of a gradient that backward replaces, whose values may be right."""
    values = dict(index=None, analytic=None, numeric=None) if tensor.right else {}
    return replace(tensor, verdict=WRONG, diagnosis=REPLACED, vacuous=False, **values)


def _replaced_gradients(module, inputs):
    """For each parameter whether backward replaces its gradient, where it should add."""
    parameters = module.parameters()
    buffers = [(buffer, buffer.data.copy()) for _, buffer in module.named_buffers()]
    results = []
    for start in (0.0, 1.0):
        for buffer, data in buffers:
            buffer.data = data
        y, cache = call("forward", module.forward, *inputs)
        given = [np.full_like(parameter.data, start) for parameter in parameters]
        for parameter, grad in zip(parameters, given, strict=True):
            parameter.grad = grad
        call("backward", module.backward, np.ones(np.shape(y)), cache)
        kept = [p.grad is grad for p, grad in zip(parameters, given, strict=True)]
        results.append((kept, [grad - start for grad in given]))
    (_, alone), (kept, added) = results
    return [
        not (same and np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True))
        for same, a, b in zip(kept, alone, added, strict=True)
    ]


def moved_from_start(module, rng):
    """The module itself, in float64 and each parameter changed by up to 0.4 either way.

    Where all of it is of one sign, by up to 0.4 of itself: what has to be positive stays so. What
    is frozen likewise. Buffers of floats grow by up to 0.4: a running variance stays above 0.
    """
    module.to(dtype=np.float64)
    for _, buffer in module.named_buffers():
        if buffer.data.dtype.kind == "f":
            buffer.data = buffer.data + rng.uniform(0, 0.4, buffer.data.shape)
    for parameter in (*module.parameters(), *(frozen for _, frozen in module.named_frozen())):
        # Arrays of its own, not views of a model's: what replaces them is then told apart.
        by, data = rng.uniform(-0.4, 0.4, parameter.data.shape), parameter.data
        parameter.hold(data * (1 + by) if (data > 0).all() or (data < 0).all() else data + by)
    return module


def module_pair(module, inputs):
    """A module as a pair of pure functions of its inputs and of its parameters.

    What is frozen is a constant of the pair, and so are its buffers, whatever forward leaves there.

    Calling the pair replaces the parameters' arrays: hand over a module that is not used otherwise.

    Args:
        module: its parameters' present values become the last inputs of the pair.
        inputs: the first ones, those of ``module.forward``.

    Returns:
        forward, backward, inputs, names: what :func:`check_pair` takes.
    """
    named = list(module.named_parameters())
    kept = *module.named_buffers(), *module.named_frozen()
    constants = [(constant, constant.data) for _, constant in kept]
    names = (*argument_names(module.forward, len(inputs)), *(path for path, _ in named))

    def put(values):
        for (_, parameter), value in zip(named, values[len(inputs) :], strict=True):
            parameter.data = value
        like = next(x for x in values if is_array(x) and x.dtype.kind == "f")
        for constant, data in constants:  # where the others are, and floats in their type
            dtype = like.dtype if data.dtype.kind == "f" else data.dtype
            constant.hold(array_namespace(like).asarray(data.copy(), dtype=dtype))

    def forward(*values):
        put(values)
        result = module.forward(*values[: len(inputs)])
        if not isinstance(result, tuple) or len(result) != 2:
            return result  # which is then said to be wrong
        y, cache = result
        return y, (cache, values)

    def backward(dy, cache):
        cache, values = cache
        put(values)  # the parameters are no part of a cache: they are those of its forward
        for _, parameter in named:
            parameter.grad = array_namespace(parameter.data).zeros_like(parameter.data)
        dinputs = module.backward(dy, cache)
        if isinstance(dinputs, dict | Iterator):
            return dinputs  # which is then said to be wrong
        dinputs = () if dinputs is None else dinputs
        dinputs = tuple(dinputs) if isinstance(dinputs, tuple | list) else (dinputs,)
        dinputs += (None,) * (len(inputs) - len(dinputs))
        return *dinputs, *(parameter.grad for _, parameter in named)

    values = (*inputs, *(parameter.data for _, parameter in named))
    return forward, backward, values, names
