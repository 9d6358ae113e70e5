"""A trained model together with what its run keeps: what all that work with one have in common."""

from typing import ClassVar

import numpy as np

from minitransformer.core.backend import to_host
from minitransformer.core.errors import DivergedError
from minitransformer.core.workers import ONE_WORKER
from minitransformer.runs.attachments import KeptFile
from minitransformer.runs.checkpoint.file import RunError
from minitransformer.runs.run_folder import RunFolder


class Trained:
    """The base of what works with a trained model; a subclass says for which task it was trained.

    Args:
        model: a Model of this task.
        origin: what its parameters are, in words.

    Attributes:
        task: as in the model's configuration.
        kept_files: those of the runs of this task.
        workers: Workers that share what it does.
    """

    task: ClassVar[str]
    kept_files: ClassVar[dict[str, KeptFile]]
    workers = ONE_WORKER

    def __init__(self, model, origin=""):
        self.model, self.origin = model, origin

    @classmethod
    def load(cls, path, device="auto", **options):
        """The model in a run folder; while it trains, that of the newest checkpoint.

        Args:
            path: the run folder.
            device: a Device or its name.
            options: as for the class.

        Raises:
            RunError, InputError, OSError: a file of the folder is missing or damaged, or two do not
                belong together; the model was trained for another task, or has diverged.
            DeviceError: the device is not usable.
            MissingLibraryError: there is no sentencepiece, and the model takes subwords.
        """
        run = RunFolder(path, cls.kept_files)
        config, _ = run.load_config()
        if config.task != cls.task:
            raise RunError(
                f"{run.path} is a model of kind {config.kind!r}, trained for {config.task!r}, "
                f"not for {cls.task!r}"
            )
        run.bind()
        model, origin = run.load_trained(device)
        kept = cls.read_kept(run, config)
        require_finite(model)
        return cls(model, *kept, origin, **options)

    @classmethod
    def read_kept(cls, run, config):
        """What the class is made with beside the model, of what its RunFolder keeps.

        Raises:
            RunError, InputError, OSError: a file is damaged, missing, or of another model.
        """
        raise NotImplementedError


def require_finite(model):
    """Raise a RunError where a parameter of a model is NaN or infinite."""
    if not np.isfinite(to_host(model.flat.data)).all():
        raise RunError(
            "a parameter of this model is NaN or infinite; its training has diverged, so train "
            "again with a lower learning rate"
        )


def require_numbers(logits):
    """``logits``; of NaN it raises a DivergedError."""
    if np.isnan(logits).any():
        raise DivergedError("the model gives NaN; train it again, or take another run")
    return logits
