"""What a module keeps: parameters, which are trained, and what is not: buffers, frozen arrays.

All parameters of a model are views of one flat array, and their gradients of a second.
"""

import weakref

from minitransformer.core.backend import array_namespace, on_host


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

        Without ``grad`` the gradient starts again at zero. On the host it takes memory when it is
        asked for; on a device now, while that device is the current one.
        """
        if grad is None and not on_host(data):
            grad = array_namespace(data).zeros_like(data)
        vars(self).update(data=data, _grad=grad, _flat=flat and weakref.ref(flat))

    @property
    def grad(self):
        if self._grad is None:
            self.grad = array_namespace(self.data).zeros_like(self.data)
        return self._grad

    @grad.setter
    def grad(self, grad):
        vars(self)["_grad"] = grad

    def __setattr__(self, name, value):
        if name in ("data", "grad") and self.flat:
            _copy_into(getattr(self, name), value)
        else:
            super().__setattr__(name, value)

    @property
    def flat(self):
        """The FlatParameters that hold it; None if there are none, or nobody has them any more."""
        return self._flat and self._flat()

    def __getstate__(self):
        """What a copy gets: arrays of its own."""
        return vars(self) | {"_flat": None}

    def __repr__(self):
        return f"Parameter(shape={self.data.shape}, dtype={self.data.dtype})"


def mean_or_last(before, copies):
    """The mean of copies of floats, summed in their order; of others the last copy."""
    return sum(copies) / len(copies) if before.dtype.kind == "f" else copies[-1]


class Buffer:
    """An array that a module keeps and does not train, such as a running mean.

    It is stored with the model, and sharing is identity, as of a Parameter. A forward that is given
    a generator, that is in a training, may assign to ``data``. Each replica has a copy of its own;
    after a step all of them become what ``merge`` makes of the copies.

    Args:
        data: an array of any type.
        merge: a function ``merge(before, copies)`` that is importable by its name: of the array
            before the step, and of the list of those of the shards that had a part in it, in their
            order, it returns the array after it. Of a single copy it must be that copy.

    Attributes:
        data: the array; what is assigned to it is copied into it, so its type and shape stay.

    Raises:
        ValueError, TypeError: as for :class:`Parameter`.
    """

    def __init__(self, data, merge=mean_or_last):
        vars(self).update(data=data, merge=merge)

    def hold(self, data):
        """Have this array itself."""
        vars(self).update(data=data)

    def __setattr__(self, name, value):
        if name == "data":
            _copy_into(self.data, value, "buffer")
        else:
            super().__setattr__(name, value)

    def __repr__(self):
        return f"Buffer(shape={self.data.shape}, dtype={self.data.dtype})"


class Frozen:
    """An array that was trained once and stays as it is, as the weight that an adapter corrects.

    It stands in the place of a Parameter, and what is added to its gradient is forgotten. It is not
    stored with the model, which is given it when it is built. Copies of a model share it.

    Attributes:
        data: the array.
    """

    def __init__(self, data):
        self.data = data

    def hold(self, data):
        """Have this array itself."""
        self.data = data

    @property
    def grad(self):
        return FORGETS

    @grad.setter
    def grad(self, grad):
        pass

    def __deepcopy__(self, memo):
        return Frozen(self.data)

    def __repr__(self):
        return f"Frozen(shape={self.data.shape}, dtype={self.data.dtype})"


class _Forgets:
    def __iadd__(self, gradient):
        return self


FORGETS = _Forgets()


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
                parameter.hold(parameter.data, parameter._grad)
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
            if parameter._grad is not None:  # else zeros, which take no memory until they change
                self.grad[piece] = parameter._grad.reshape(-1)
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


def _copy_into(view, values, what="parameter"):
    """``view[...] = values``, where ``values`` is an array of the same shape in the same place."""
    if values is view:  # of ``view += x``, which has been done
        return
    if array_namespace(values) is not array_namespace(view):
        raise TypeError(
            f"a {what} was assigned an array in another place than its own; bring it there first: "
            "model.device.asarray(values)"
        )
    if values.shape != view.shape:
        raise ValueError(
            f"a {what} of shape {view.shape} was assigned an array of shape {values.shape}; "
            "give one of its own shape, or build the model with other sizes"
        )
    view[...] = values.copy()  # which may be a view of the same numbers, as ``view.T`` is
