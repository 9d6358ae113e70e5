"""Checkpoints: what a training leaves on disk, written whole or not at all, read without trust.

    arrays, state = load_checkpoint(path)

A file of arrays and JSON; the arrays of a model in it; what that model is bound to; the folder in
which a run keeps several.
"""

from minitransformer.runs.checkpoint.arrays import (
    average,
    load_model_arrays,
    model_arrays,
    require_size,
)
from minitransformer.runs.checkpoint.binding import Binding
from minitransformer.runs.checkpoint.file import (
    CheckpointError,
    NewerFormatError,
    RunError,
    load_checkpoint,
    load_state,
    save_checkpoint,
)
from minitransformer.runs.checkpoint.folder import (
    EPOCHS,
    STEPS,
    checkpoint_path,
    checkpoints,
    load_newest,
    newest_checkpoint,
    prune,
)

__all__ = [
    "EPOCHS",
    "STEPS",
    "Binding",
    "CheckpointError",
    "NewerFormatError",
    "RunError",
    "average",
    "checkpoint_path",
    "checkpoints",
    "load_checkpoint",
    "load_model_arrays",
    "load_newest",
    "load_state",
    "model_arrays",
    "newest_checkpoint",
    "prune",
    "require_size",
    "save_checkpoint",
]
