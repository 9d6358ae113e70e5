"""Parameters and the tree of modules that owns them. No autograd: every backward is written out.

A module holds parameters, other modules and constant arrays, as attributes or in lists, tuples and
dicts; their order of assignment is the order of everything that follows: names, storage, summaries.
Names are paths, ``encoder.layers.0.self_attention.w_query``.
"""

import weakref
from contextlib import contextmanager, nullcontext

import numpy as np

from minitransformer.core.backend import array_namespace, is_array, select_device

SHARED = " (shared, counted above)"


class Parameter:
    """A trained array and the gradient of the loss with respect to it, of the same shape.

    Sharing is identity: a weight used in several places is one Parameter assigned to several
    attributes. It is then listed, counted, stored and updated once.

    Attributes:
        data, grad: arrays. Those of a model are views of its :class:`FlatParameters`, and what is
            assigned to them is copied there: who wants the old values back keeps a copy of them.

    Raises:
        ValueError, TypeError: what is assigned to a view is of another shape, or no array, or one
            in another place.
    """

    def __init__(self, data):
        self.hold(data)

    def hold(self, data, grad=None, flat=None):
        """Have these arrays themselves: of its own or, with ``flat``, views of that storage.

        Without ``grad`` the gradient starts again at zero.
        """
        self._data = data
        self._grad = array_namespace(data).zeros_like(data) if grad is None else grad
        self._flat = flat and weakref.ref(flat)

    @property
    def flat(self):
        """The FlatParameters that hold it; None if there are none, or nobody has them any more."""
        return self._flat and self._flat()

    @property
    def data(self):
        return self._data

    @data.setter
    def data(self, values):
        if self.flat:
            _copy_into(self._data, values)
        else:
            self._data = values

    @property
    def grad(self):
        return self._grad

    @grad.setter
    def grad(self, values):
        if self.flat:
            _copy_into(self._grad, values)
        else:
            self._grad = values

    def __getstate__(self):
        """What a copy gets: arrays of its own."""
        return vars(self) | {"_flat": None}

    def __repr__(self):
        return f"Parameter(shape={self.data.shape}, dtype={self.data.dtype})"


class Module:
    """A node of the tree: a layer with parameters, or a composite of other modules.

    Subclasses define ``forward(...) -> (y, cache)`` and ``backward(dy, cache)``, which adds to
    the gradients of the parameters and returns the gradients of the inputs.
    """

    def children(self):
        """Yield (name, child) for each parameter and module, in order of assignment."""
        for name, value in vars(self).items():
            yield from _nodes_in(value, name)

    def named_modules(self, path=""):
        """Yield (path, module) for this module, path ``""``, and all below it, each once."""
        yield from _each_once(
            (p, node) for p, node in _walk(self, path) if isinstance(node, Module)
        )

    def named_parameters(self):
        """Yield (path, parameter) for each distinct parameter, under the first of its paths."""
        parameters = ((p, node) for p, node in _walk(self) if isinstance(node, Parameter))
        yield from _each_once(parameters)

    def parameters(self):
        """The distinct parameters as a list, in the order of :meth:`named_parameters`."""
        return [parameter for _, parameter in self.named_parameters()]

    def num_parameters(self):
        """How many numbers are trained; shared ones count once."""
        return sum(parameter.data.size for parameter in self.parameters())

    def zero_grad(self):
        """Set all gradients to zero; backward only ever adds to them."""
        for parameter in self.parameters():
            parameter.grad.fill(0)

    def to(self, device=None, dtype=None):
        """Move parameters and constants to ``device`` and floating type ``dtype``; return self.

        Gradients start again at zero. None leaves that property as it is. Constants that are no
        floats, such as indices and masks, keep their type.

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


class FlatParameters:
    """All parameters of a module as one array ``data``, their gradients as another, ``grad``.

    The parameters become views of the two arrays, so that clearing, clipping, updating, averaging
    or storing them all is one operation on one array.

    Attributes:
        data, grad: 1-D arrays of one length.
        slices: the path of each parameter and where it lies in them.
    """

    def __init__(self, module):
        self._parameters = []
        self.gather(module)

    def gather(self, module):
        """Take in the parameters as they are now, after the module was moved."""
        named = dict(module.named_parameters())
        if not named:
            raise ValueError(f"{module!r} has no parameters to store")
        for parameter in self._parameters:
            if parameter.flat is self:  # it may be no part of the module any more
                parameter.hold(parameter.data, parameter.grad)
        self._gather(named)

    def _gather(self, named):
        self._parameters = list(named.values())
        first = self._parameters[0].data
        total = sum(parameter.data.size for parameter in self._parameters)
        xp = array_namespace(first)
        self.data = xp.empty(total, dtype=first.dtype)
        self.grad = xp.zeros(total, dtype=first.dtype)
        self.slices = {}
        start = 0
        for path, parameter in named.items():
            shape = parameter.data.shape
            piece = slice(start, start + parameter.data.size)
            self.data[piece] = parameter.data.reshape(-1)
            self.grad[piece] = parameter.grad.reshape(-1)
            parameter.hold(self.data[piece].reshape(shape), self.grad[piece].reshape(shape), self)
            self.slices[path] = piece
            start = piece.stop

    def share_data(self, other):
        """Make ``data`` that of ``other``, the storage of a model of the same shape."""
        self.data = other.data
        for parameter, piece in zip(self._parameters, self.slices.values(), strict=True):
            view = other.data[piece].reshape(parameter.data.shape)
            parameter.hold(view, parameter.grad, self)

    def __getstate__(self):
        """What a copy is made of: the parameters by their paths."""
        return dict(zip(self.slices, self._parameters, strict=True))

    __setstate__ = _gather  # copied one by one, views are no longer views of one array


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
                checked = _checked_backward if name.endswith("backward") else _checked_forward
                method = checked(getattr(module, name), name, path, module)
                method.put_there_by_debug = True
                setattr(module, name, method)
    try:
        yield model
    finally:
        for module, name, own in before:
            delattr(module, name) if own is None else setattr(module, name, own)


def _checked_forward(forward, name, path, module):
    def checked(*args, **kwargs):
        _raise_if_not_finite((*args, *kwargs.values()), f"the input of {path}.{name}")
        y, cache = forward(*args, **kwargs)
        _raise_if_not_finite(y, f"the output of {path}.{name}")
        return y, cache

    return checked


def _checked_backward(backward, name, path, module):
    def checked(dy, cache):  # the cache was looked at when it was made
        _raise_if_not_finite(dy, f"the input of {path}.{name}")
        dx = backward(dy, cache)
        _raise_if_not_finite(dx, f"the output of {path}.{name}")
        for parameter_path, parameter in module.named_parameters():
            _raise_if_not_finite(parameter.grad, f"the gradient of {path}.{parameter_path}")
        return dx

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
    if isinstance(value, Parameter | Module):
        yield name, value
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from _nodes_in(item, f"{name}.{i}")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _nodes_in(item, f"{name}.{key}")


def _each_once(named):
    seen = set()
    for path, node in named:
        if id(node) not in seen:
            seen.add(id(node))
            yield path, node


def _copy_into(view, values):
    """``view[...] = values``, where ``values`` is an array of the same shape in the same place."""
    if values is view:  # of ``view += x``, which has been done
        return
    if array_namespace(values) is not array_namespace(view):
        raise TypeError(
            "a parameter was assigned an array in another place than its own; bring it there "
            "first: model.device.asarray(values)"
        )
    if values.shape != view.shape:
        raise ValueError(
            f"a parameter of shape {view.shape} was assigned an array of shape {values.shape}; "
            "give one of its own shape, or build the model with other sizes"
        )
    view[...] = values.copy()  # which may be a view of the same numbers, as ``view.T`` is


def _converted(array, device, dtype):
    dtype = array.dtype if dtype is None else dtype
    return array.astype(dtype, copy=False) if device is None else device.asarray(array, dtype)


def _moved(value, device, dtype):
    """``value``, or where it is or holds constant arrays, one with these on the device."""
    if is_array(value) and value.ndim:  # a single number is a setting
        return _converted(value, device, dtype if value.dtype.kind == "f" else None)
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
    if isinstance(node, Parameter):
        count = SHARED if id(node) in seen else f" = {node.data.size:,}"
        seen.add(id(node))
        return [f"{indent}{name} {node.data.shape}{count}"]
    parameters = node.parameters()
    shared = parameters and all(id(parameter) in seen for parameter in parameters)
    lines = [f"{indent}{name}{SHARED if shared else f': {node.num_parameters():,}'}"]
    for child_name, child in node.children():
        lines += _summary_lines(child, child_name, indent + "  ", seen)
    return lines
