"""The arrays of a model in a checkpoint, and the mean of those of several; adapters are merged."""

import numpy as np

from minitransformer.core.backend import is_array, to_host
from minitransformer.models.adapters import adapted_name
from minitransformer.runs.checkpoint.file import CheckpointError, load_checkpoint

PARAMETERS, BUFFERS = "parameters", "buffers"


def model_arrays(model, **vectors):
    """Host copies of what a Model keeps, by name: ``parameters/<path>`` and ``buffers/<path>``.

    Args:
        vectors: further arrays laid out like ``model.flat.data``. ``**adam.vectors`` adds
            ``m/<path>`` and ``v/<path>``.
    """
    arrays = {}
    for group, vector in {PARAMETERS: model.flat.data, **vectors}.items():
        host = np.array(to_host(vector))
        for path, parameter in model.named_parameters():
            piece = host[model.flat.slices[path]]
            arrays[f"{group}/{path}"] = piece.reshape(parameter.data.shape)
    for path, buffer in model.named_buffers():
        arrays[f"{BUFFERS}/{path}"] = np.array(to_host(buffer.data))
    return arrays


def load_model_arrays(model, arrays, where="the checkpoint", **vectors):
    """Put what :func:`model_arrays` returned back in place, all of it or nothing.

    StoredArrays are read one after the other; a model is of no use after one that is damaged.

    Groups that are not asked for are left alone: without ``m`` and ``v`` a training checkpoint
    gives its parameters, and always its buffers.

    Raises:
        CheckpointError: a name is missing or too many, a shape or dtype differs; lists them.
    """
    groups = {PARAMETERS: model.flat.data, **vectors}
    expected = {
        f"{group}/{path}": (parameter.data.shape, vector.dtype)
        for group, vector in groups.items()
        for path, parameter in model.named_parameters()
    }
    for path, buffer in model.named_buffers():
        expected[f"{BUFFERS}/{path}"] = (buffer.data.shape, buffer.data.dtype)
    given = _of_groups(arrays, *groups, BUFFERS)
    differences = _differences(_kinds(given), expected)
    if differences:
        raise CheckpointError(
            f"{where} is of another model: {differences}; "
            "build the model with the configuration it was trained with"
        )
    for group, vector in groups.items():
        with model.device.as_current():
            for path, piece in model.flat.slices.items():
                array = np.asarray(arrays[f"{group}/{path}"])  # which may be read only here
                vector[piece] = model.device.asarray(array.reshape(-1))
    for path, buffer in model.named_buffers():
        buffer.data = model.device.asarray(np.asarray(arrays[f"{BUFFERS}/{path}"]))


def load_frozen(model, arrays, where="the checkpoint"):
    """Let the Frozen arrays of a model with adapters be those of one without, themselves.

    Raises:
        CheckpointError: one is missing, or of another shape; names ``where`` they are from.
    """
    there = {adapted_name(name): array for name, array in arrays.items()}
    for path, frozen in model.named_frozen():
        array = there.get(f"{PARAMETERS}/{path}")
        if array is None or array.shape != frozen.data.shape:
            what = "nothing" if array is None else f"an array of shape {array.shape}"
            raise CheckpointError(f"{where} has, for {path} of shape {frozen.data.shape}, {what}")
        array = array if is_array(array) else np.asarray(array)  # which may be read only here
        frozen.hold(model.device.asarray(array, frozen.data.dtype))


def merge_adapters(model, arrays):
    """Add what adapters have learned to the weights of a model without any: W + A B.

    Args:
        model: a LanguageModel, with the parameters that were adapted.
        arrays: those of the same model with adapters, as :func:`model_arrays` has them; their scale
            is 1, as :func:`adapt` makes them.

    Raises:
        CheckpointError: they are of another model.
    """
    given, merged = set(_of_groups(arrays, PARAMETERS)), set()
    with model.device.as_current():
        for path, parameter in model.named_parameters():
            linear = adapted_name(f"{PARAMETERS}/{path}").removesuffix(".weight")
            names = f"{linear}.a", f"{linear}.b"
            if not given.intersection(names):
                continue
            a, b = (np.asarray(arrays.get(name, ())) for name in names)
            if (*a.shape[:1], *b.shape[1:]) != parameter.data.shape or a.shape[1:] != b.shape[:1]:
                raise CheckpointError(f"adapters of {path} are {a.shape} and {b.shape}")
            parameter.data += model.device.asarray(a) @ model.device.asarray(b)
            merged.update(names)
    if given - merged:
        raise CheckpointError(f"adapters of nothing: {_shortened(sorted(given - merged))}")


def require_size(where, config, arrays):
    """Refuse the configuration of a model of another size than ``arrays``, before it is built.

    A model is built before arrays are put into it, and a wrong number of layers would take all
    memory there is.

    Raises:
        CheckpointError: which names ``where`` the arrays are from.
    """
    held = sum(array.size for array in _of_groups(arrays, PARAMETERS).values())
    described = config.num_parameters()
    if described != held:
        raise CheckpointError(
            f"{where} is of another model: it holds {held:,} parameters, and the configuration is "
            f"of {described:,}; take both from one run"
        )


def average(paths):
    """The mean of a model's arrays in several checkpoints; those of no floats are the last one's.

    Returns:
        arrays for :func:`load_model_arrays`, summed in float64, in the dtype of the first
        checkpoint.

    Raises:
        CheckpointError: one cannot be read, or two differ in names, shapes or dtypes.
        ValueError: there are no paths.
    """
    paths = list(paths)
    if not paths:
        raise ValueError("there are no checkpoints to average")
    first = last = _load_model(paths[0])
    sums = {name: array.astype(np.float64) for name, array in first.items()}
    for path in paths[1:]:
        arrays = last = _load_model(path)
        differences = _differences(_kinds(arrays), _kinds(first))
        if differences:
            raise CheckpointError(
                f"{path} and {paths[0]} are of different models: {differences}; "
                "average checkpoints of one run"
            )
        for name, array in arrays.items():
            sums[name] += array
    means = {name: (sums[name] / len(paths)).astype(first[name].dtype) for name in first}
    return {name: means[name] if last[name].dtype.kind == "f" else last[name] for name in first}


def _load_model(path):
    arrays, _ = load_checkpoint(path)
    return _of_groups(arrays, PARAMETERS, BUFFERS)


def _of_groups(arrays, *groups):
    return {name: array for name, array in arrays.items() if name.partition("/")[0] in groups}


def _kinds(arrays):
    return {name: (array.shape, array.dtype) for name, array in arrays.items()}


def _differences(given, expected):
    """How two dicts of (shape, dtype) by name differ, in words; "" where they do not."""
    missing = [name for name in expected if name not in given]
    unexpected = [name for name in given if name not in expected]
    changed = [
        f"{name} is {given[name][1]} {given[name][0]}, not {expected[name][1]} {expected[name][0]}"
        for name in expected
        if name in given and given[name] != expected[name]
    ]
    lists = {"missing": missing, "unexpected": unexpected, "of another shape or type": changed}
    return "; ".join(f"{what}: {_shortened(names)}" for what, names in lists.items() if names)


def _shortened(names, shown=5):
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")
