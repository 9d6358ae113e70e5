"""Puts functions of Python in the place of functions that compiled modules call in each other.

A module made by Cython offers what others call of it in a table, ``__pyx_capi__``, from which they
copy when they are imported: by its name, the address of a C function and, as text, its type. So
whoever comes before them can change what they copy.
"""

import ctypes
import importlib
import traceback

OBJECT = "PyObject *"
TYPES = {
    OBJECT: ctypes.py_object,
    "int": ctypes.c_int,
    "unsigned int": ctypes.c_uint,
    "PY_LONG_LONG": ctypes.c_longlong,
    "intptr_t": ctypes.c_ssize_t,
    "size_t": ctypes.c_size_t,
}
LAST = "int __pyx_skip_dispatch"  # after it comes a structure of optional arguments, if any

_type_of = ctypes.pythonapi.PyCapsule_GetName
_type_of.restype, _type_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
_keep = ctypes.pythonapi.Py_IncRef
_keep.restype, _keep.argtypes = None, [ctypes.py_object]
_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def replace(name, stand_in):
    """Import a module; whoever does so later calls the functions of ``stand_in`` in their place.

    Args:
        name: of the module.
        stand_in: a module with functions of the same names. They are not given the optional
            arguments that compiled modules hand over. An error they raise there is printed, and
            becomes a SystemError.
    """
    module = importlib.import_module(name)
    table = getattr(module, "__pyx_capi__", {})
    for name, function in vars(stand_in).items():
        if not callable(function):
            continue
        if hasattr(module, name):
            setattr(module, name, function)
        if name in table:
            table[name] = _compiled(function, _type_of(table[name]))


def _compiled(function, signature):
    """An entry of a table: a C function of that type, which calls a function of Python."""
    result, _, parameters = signature.decode().removesuffix(")").partition("(")
    parameters = [] if parameters == "void" else parameters.split(", ")
    count = parameters.index(LAST) if LAST in parameters else len(parameters)
    types = [TYPES.get(p, ctypes.c_void_p) for p in parameters]
    is_object = result == OBJECT
    # CuPy frees memory even when Python has forgotten the names of modules.
    keep, address, report = _keep, id, traceback.print_exc

    def called(*args):
        try:
            value = function(*args[:count])
        except Exception:
            report()
            return 0
        if not is_object:
            return value
        keep(value)
        return address(value)

    returned = ctypes.c_void_p if is_object else TYPES[result.strip()]
    callback = ctypes.PYFUNCTYPE(returned, *types)(called)
    _keep(callback)
    _keep(signature)
    return _capsule(ctypes.cast(callback, ctypes.c_void_p), signature, None)
