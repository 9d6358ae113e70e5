"""Parameters and the tree of modules that owns them. No autograd: every backward is written out.

A module holds parameters, other modules, lists, tuples or dicts of these, and constant arrays as
plain attributes; their order of assignment is the order of everything that follows: names, storage,
summaries. Names are paths, ``encoder.layers.0.self_attention.w_query``.
"""

from contextlib import contextmanager

from minitransformer.backend import array_namespace, is_array, select_device

SHARED = " (shared, counted above)"


class Parameter:
    """A trained array and the gradient of the loss with respect to it, of the same shape.

    Sharing is identity: a weight used in several places is one Parameter assigned to several
    attributes. It is then listed, counted, stored and updated once.
    """

    def __init__(self, data):
        self.data = data
        self.grad = array_namespace(data).zeros_like(data)

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

        Gradients start again at zero. None leaves that property as it is. Call it on the whole
        model: parameters in flat storage are views, which moving a part would tear out of it.

        Args:
            device: a Device or the name of one, as for :func:`select_device`.
        """
        device = None if device is None else select_device(device)
        for parameter in self.parameters():
            parameter.data = _converted(parameter.data, device, dtype)
            parameter.grad = array_namespace(parameter.data).zeros_like(parameter.data)
        for _, module in self.named_modules():
            module.constants_to(device, dtype)
        return self

    def constants_to(self, device=None, dtype=None):
        """The part of :meth:`to` that moves this module's own constant arrays."""
        for name, value in vars(self).items():
            if is_array(value) and value.ndim:  # a single number is a setting
                setattr(self, name, _converted(value, device, dtype))

    def __repr__(self):
        return f"{type(self).__name__}({self.num_parameters():,} parameters)"

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
        self.gather(module)

    def gather(self, module):
        """Take in the parameters as they are now, after the module was moved."""
        named = list(module.named_parameters())
        if not named:
            raise ValueError(f"{module!r} has no parameters to store")
        first = named[0][1].data
        total = sum(parameter.data.size for _, parameter in named)
        xp = array_namespace(first)
        self.data = xp.empty(total, dtype=first.dtype)
        self.grad = xp.zeros(total, dtype=first.dtype)
        self.slices = {}
        start = 0
        for path, parameter in named:
            shape = parameter.data.shape
            piece = slice(start, start + parameter.data.size)
            self.data[piece] = parameter.data.reshape(-1)
            self.grad[piece] = parameter.grad.reshape(-1)
            parameter.data = self.data[piece].reshape(shape)
            parameter.grad = self.grad[piece].reshape(shape)
            self.slices[path] = piece
            start = piece.stop
        self._parameters = [parameter for _, parameter in named]

    def share_data(self, other):
        """Make ``data`` that of ``other``, the storage of a model of the same shape."""
        self.data = other.data
        for parameter, piece in zip(self._parameters, self.slices.values(), strict=True):
            parameter.data = other.data[piece].reshape(parameter.data.shape)


@contextmanager
def debug(model):
    """Inside ``with debug(model):`` stop at the first NaN or infinity and name its layer.

    Every forward and backward of the model and of the modules in it then looks at what it is
    given and at what it returns. On a GPU each look waits for the device.

    Raises:
        FloatingPointError: naming the module by its path, and the place in the array.
    """
    before = []
    for path, module in model.named_modules(path=type(model).__name__):
        for direction in ("forward", "backward"):
            if hasattr(module, direction):  # a residual connection has enter and leave instead
                before.append((module, direction, vars(module).get(direction)))
                method = getattr(module, direction)
                setattr(module, direction, _checked(method, direction, path))
    try:
        yield model
    finally:
        for module, direction, own in before:
            delattr(module, direction) if own is None else setattr(module, direction, own)


def _checked(method, direction, path):
    def checked(*args, **kwargs):
        given = (*args, *kwargs.values())
        given = given if direction == "forward" else given[:1]  # the cache was looked at when made
        _raise_if_not_finite(given, f"the input of {path}.{direction}")
        result = method(*args, **kwargs)
        returned = result[:1] if direction == "forward" else result
        _raise_if_not_finite(returned, f"the output of {path}.{direction}")
        return result

    return checked


def _raise_if_not_finite(values, where):
    for value in values if isinstance(values, tuple) else (values,):
        if is_array(value) and value.dtype.kind == "f":
            xp = array_namespace(value)
            bad = ~xp.isfinite(value)
            if bool(bad.any()):
                index = tuple(int(i[0]) for i in xp.nonzero(bad))
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


def _converted(array, device, dtype):
    dtype = array.dtype if dtype is None else dtype
    return array.astype(dtype, copy=False) if device is None else device.asarray(array, dtype)


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
