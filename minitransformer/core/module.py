"""The tree of modules that owns parameters. No autograd: every backward is written out.

A module holds parameters, buffers, frozen arrays, other modules and constant arrays, as attributes
or in lists, tuples and dicts; their order of assignment is that of everything else: names, storage,
summaries.
Names are paths, ``encoder.layers.0.self_attention.w_query``.
"""

from contextlib import contextmanager, nullcontext

import numpy as np

from minitransformer.core.backend import array_namespace, is_array, select_device
from minitransformer.core.parameter import Buffer, FlatParameters, Frozen, Parameter

SHARED = " (shared, counted above)"


class Module:
    """A node of the tree: a layer with parameters, or a composite of other modules.

    Subclasses define ``forward(...) -> (y, cache)`` and ``backward(dy, cache)``, which adds to
    the gradients of the parameters and returns the gradients of the inputs.
    """

    def children(self):
        """Yield (name, child) for each module and each array it keeps, in order of assignment."""
        for name, value in vars(self).items():
            yield from _nodes_in(value, name)

    def named_modules(self, path=""):
        """Yield (path, module) for this module, path ``""``, and all below it, each once."""
        yield from _each_of(Module, self, path)

    def named_parameters(self):
        """Yield (path, parameter) for each distinct parameter, under the first of its paths."""
        yield from _each_of(Parameter, self)

    def named_buffers(self):
        """Yield (path, buffer) for each distinct buffer, under the first of its paths."""
        yield from _each_of(Buffer, self)

    def named_frozen(self):
        """Yield (path, frozen) for each distinct Frozen array, under the first of its paths."""
        yield from _each_of(Frozen, self)

    def parameters(self):
        """The distinct parameters as a list, in the order of :meth:`named_parameters`."""
        return [parameter for _, parameter in self.named_parameters()]

    def num_parameters(self):
        """How many numbers are trained; shared ones count once."""
        return sum(parameter.data.size for parameter in self.parameters())

    def freeze(self):
        """Make all parameters Frozen; what was shared is shared.

        Raises:
            ValueError: one is in a list, a tuple or a dict.
        """
        frozen = {id(parameter): Frozen(parameter.data) for parameter in self.parameters()}
        for _, module in self.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, Parameter):
                    setattr(module, name, frozen[id(value)])
        for path, _ in self.named_parameters():
            raise ValueError(f"{path} is no attribute of a module, so it cannot be frozen")

    def zero_grad(self):
        """Set all gradients to zero; backward only ever adds to them."""
        for parameter in self.parameters():
            parameter.grad.fill(0)

    def to(self, device=None, dtype=None):
        """Move all that is kept to ``device`` and floating type ``dtype``; return self.

        Gradients start again at zero. None leaves that property as it is. Buffers and constants
        that are no floats, such as indices and masks, keep their type.

        Args:
            device: a Device or the name of one, as for :func:`select_device`.

        Raises:
            RuntimeError: this is a part of a model with flat storage. Its parameters are views,
                which moving would tear out of it; move the whole model.
        """
        self._raise_if_part_of_flat_storage()
        device = None if device is None else select_device(device)
        with device.as_current() if device else nullcontext():
            for parameter in self.parameters():
                parameter.hold(_converted(parameter.data, device, dtype))
            for _, kept in (*self.named_buffers(), *self.named_frozen()):
                kept.hold(_converted(kept.data, device, dtype))
            for _, module in self.named_modules():
                module.constants_to(device, dtype)
                for flat in module._flat_storages():
                    flat.gather(module)
        return self

    def constants_to(self, device=None, dtype=None):
        """The part of :meth:`to` that moves this module's own constant arrays."""
        for name, value in vars(self).items():
            setattr(self, name, _moved(value, device, dtype))

    def _flat_storages(self):
        return [value for value in vars(self).values() if isinstance(value, FlatParameters)]

    def _raise_if_part_of_flat_storage(self):
        own = [flat for _, module in self.named_modules() for flat in module._flat_storages()]
        for path, parameter in self.named_parameters():
            if parameter.flat and parameter.flat not in own:
                raise RuntimeError(
                    f"{path} is a view of the flat storage of a larger model, and moving this "
                    f"{type(self).__name__} alone would tear it out; call to() of the whole model"
                )

    def __repr__(self):
        return f"{type(self).__name__}({self.num_parameters():,} parameters)"

    def __getstate__(self):
        """What a copy gets: not what :func:`debug` put here, which works on this module only."""
        return {n: v for n, v in vars(self).items() if not hasattr(v, "put_there_by_debug")}

    def summary(self, file=None):
        """Print the tree with the shapes of parameters and the count below each module."""
        print("\n".join(_summary_lines(self, type(self).__name__, "", set())), file=file)


@contextmanager
def debug(model):
    """Inside ``with debug(model):`` stop at the first NaN or infinity and name its layer.

    Every forward and backward of the model and of the modules in it then looks at what it is
    given and at what it returns, and a backward also at the gradients of its parameters. Copies and
    replicas of the model are not looked at. On a GPU each look waits for the device.

    Raises:
        FloatingPointError: naming the module or parameter by its path, and the place in the array.
    """
    before = []
    for path, module in model.named_modules(path=type(model).__name__):
        for name in ("forward", "backward", "loss", "loss_backward"):
            if hasattr(module, name):  # a residual connection has enter and leave instead
                before.append((module, name, vars(module).get(name)))
                method = _checked(getattr(module, name), name, path, module)
                method.put_there_by_debug = True
                setattr(module, name, method)
    try:
        yield model
    finally:
        for module, name, own in before:
            delattr(module, name) if own is None else setattr(module, name, own)


def _checked(method, name, path, module):
    def checked(*args, **kwargs):
        backward = name.endswith("backward")
        given = args[:1] if backward else (*args, *kwargs.values())  # a cache was looked at before
        _raise_if_not_finite(given, f"the input of {path}.{name}")
        returned = method(*args, **kwargs)
        _raise_if_not_finite(returned if backward else returned[0], f"the output of {path}.{name}")
        for parameter_path, parameter in module.named_parameters() if backward else ():
            _raise_if_not_finite(parameter.grad, f"the gradient of {path}.{parameter_path}")
        return returned

    return checked


def _raise_if_not_finite(values, where):
    for value in values if isinstance(values, tuple) else (values,):
        if is_array(value) and value.dtype.kind == "f":
            bad = ~array_namespace(value).isfinite(value)
            if bool(bad.any()):
                first = int(bad.reshape(-1).argmax())
                index = tuple(int(i) for i in np.unravel_index(first, value.shape))
                raise FloatingPointError(
                    f"{float(value[index])} first appears in {where}, "
                    f"at index {index} of an array of shape {value.shape}"
                )


def _walk(node, path=""):
    """Yield (path, node) over the whole tree, shared nodes as often as they are reached."""
    yield path, node
    if isinstance(node, Module):
        for name, child in node.children():
            yield from _walk(child, f"{path}.{name}" if path else name)


def _nodes_in(value, name):
    if isinstance(value, Parameter | Buffer | Frozen | Module):
        yield name, value
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from _nodes_in(item, f"{name}.{i}")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _nodes_in(item, f"{name}.{key}")


def _each_of(kind, module, start=""):
    """Yield (path, node) of the nodes of a kind, each once, under the first of its paths."""
    seen = set()
    for path, node in _walk(module, start):
        if isinstance(node, kind) and id(node) not in seen:
            seen.add(id(node))
            yield path, node


def _converted(array, device, dtype):
    """``array`` on the device; None leaves it where it is, and only floats take another type."""
    dtype = array.dtype if dtype is None or array.dtype.kind != "f" else dtype
    return array.astype(dtype, copy=False) if device is None else device.asarray(array, dtype)


def _moved(value, device, dtype):
    """``value``, or where it is or holds constant arrays, one with these on the device."""
    if is_array(value) and value.ndim:  # a single number is a setting
        return _converted(value, device, dtype)
    if not isinstance(value, list | tuple | dict):
        return value
    items = value.values() if isinstance(value, dict) else value
    moved = [_moved(item, device, dtype) for item in items]
    if all(new is old for new, old in zip(moved, items, strict=True)):
        return value
    if isinstance(value, dict):
        return value | dict(zip(value, moved, strict=True))
    return type(value)._make(moved) if hasattr(value, "_make") else type(value)(moved)


def _summary_lines(node, name, indent, seen):
    if isinstance(node, Parameter | Buffer | Frozen):
        count = f" = {node.data.size:,}" if isinstance(node, Parameter) else " (not trained)"
        count = SHARED if id(node) in seen else count
        seen.add(id(node))
        return [f"{indent}{name} {node.data.shape}{count}"]
    parameters = node.parameters()
    shared = parameters and all(id(parameter) in seen for parameter in parameters)
    lines = [f"{indent}{name}{SHARED if shared else f': {node.num_parameters():,}'}"]
    for child_name, child in node.children():
        lines += _summary_lines(child, child_name, indent + "  ", seen)
    return lines
