"""The parameters that a run folder holds: checkpoints, epochs, and those that were chosen.

Each of the files notes what it is bound to, its :class:`Binding`, and is refused where that is
something else.
"""

import reprlib
import warnings
from contextlib import contextmanager, nullcontext, suppress

from minitransformer.core.backend import select_device
from minitransformer.models.registry import new_model
from minitransformer.runs.attachments import OF_TRAINING, sha256
from minitransformer.runs.checkpoint.arrays import (
    average,
    load_model_arrays,
    merge_adapters,
    model_arrays,
    require_size,
)
from minitransformer.runs.checkpoint.binding import Binding
from minitransformer.runs.checkpoint.fields import number, require_fields
from minitransformer.runs.checkpoint.file import (
    CheckpointError,
    NewerFormatError,
    RunError,
    load_checkpoint,
    load_state,
    open_checkpoint,
    save_checkpoint,
)
from minitransformer.runs.checkpoint.folder import (
    EPOCHS,
    STEPS,
    checkpoint_path,
    checkpoints,
    load_newest,
    prune,
)
from minitransformer.runs.paths import RunPaths

IMPORTED, MERGED = "imported", "merged"
FROM_A_COPY = "take it from a copy of the run"
# The origins of parameters that were not trained where they are, and have no score; in words.
UNSCORED = {IMPORTED: "imported, trained elsewhere", MERGED: "merged, trained in another run"}


class RunParameters(RunPaths):
    """What is saved of a model in a run folder, and loaded.

    Attributes:
        bound: the Binding that all that is saved notes, and that all that is loaded has to have;
            None until :meth:`bind`.
    """

    bound = None

    def bind(self, recipe=None, texts=None):
        """Set what is ``bound``: the configuration and the files in the folder, and these.

        Args:
            recipe, texts: as for :class:`Binding`; None where they do not matter.

        Raises:
            RunError: as for :meth:`load_config`; or a file that the run keeps is damaged.
            OSError: one that every run has is missing, or is no file to be read.
        """
        config, _ = self.load_config()
        files = {name: (file.name, sha256(self.attached[name])) for name, file in self.kept.items()}
        for name, file in OF_TRAINING.items():
            if recipe is None and not (config.adapted and name == "beginning"):
                continue
            path = self.attached[name]
            files[name] = (file.name, sha256(path) if path.exists() else "")
        self.bound = Binding(config.as_dict(), files, recipe, texts)

    def save_checkpoint(self, arrays, state):
        """Write all that a resume needs, then remove all checkpoints but the newest two."""
        self._save(checkpoint_path(self.checkpoints, state["step"]), arrays, state)
        self.prune_checkpoints()

    def prune_checkpoints(self):
        """Remove all checkpoints but the newest two."""
        if len(there := checkpoints(self.checkpoints)) > 2:
            prune(self.checkpoints, keep=there[-2:])

    def checkpoint_states(self):
        """(path, state) of each checkpoint, the oldest first, but for damaged ones."""
        found = []
        for path in checkpoints(self.checkpoints):
            with suppress(CheckpointError):
                found.append((path, load_state(path)))
        return found

    def load_newest_checkpoint(self):
        """(arrays, state) of the newest whole checkpoint, or None.

        Raises:
            NewerFormatError: see :func:`load_newest`.
            RunError: it is of another run.
        """
        newest = load_newest(self.checkpoints)
        if newest is None:
            return None
        path, arrays, state = newest
        self._require_bound(path, state)
        return arrays, state

    def epoch_file(self, epoch):
        """Where the parameters after ``epoch``, counted from 1, are."""
        return EPOCHS.path(self.epochs, epoch)

    def epoch_files(self):
        """All that there are, the first epoch first."""
        return EPOCHS.paths(self.epochs)

    def save_epoch(self, model, epoch):
        """Write the parameters after ``epoch``."""
        self._save(self.epoch_file(epoch), model_arrays(model), {"epoch": epoch})

    def require_epochs(self, epochs):
        """Raise a RunError unless the parameters after these epochs are there, whole and bound."""
        for epoch in epochs:
            self.load(self.epoch_file(epoch))

    def mean_of_epochs(self, epochs):
        """The mean of the parameters after these epochs, as :func:`average` has it."""
        return average([self.epoch_file(epoch) for epoch in epochs])

    def prune_epochs(self, keep):
        """Remove the parameters after the epochs before the last in ``keep`` that are not in it."""
        for epoch in set(range(1, max(keep, default=1))) - set(keep):
            path = self.epoch_file(epoch)
            if path.is_file():
                path.unlink()

    def save_model(self, arrays, origin, **scores):
        """Write the chosen parameters, in words where they are from, and by what scores."""
        scores = {f"validation_{name}": value for name, value in scores.items()}
        self._save(self.model, arrays, {"origin": origin, **scores})

    def load_chosen(self, read=load_checkpoint):
        """(arrays, state) of the chosen parameters, or None as long as there are none.

        Args:
            read: load_checkpoint or open_checkpoint.

        Raises:
            RunError: the file is damaged, of another run, or no choice of parameters.
        """
        if not self.model.exists():
            return None
        with self._mended_by_resuming():
            arrays, state = read(self.model)
            scores = [name for name in state if name.startswith("validation_")]
            require_fields(self.model, state, origin=str, **dict.fromkeys(scores, number))
            if not scores and state["origin"] not in UNSCORED:
                raise CheckpointError(f"{self.model} is damaged: it has no score")
        self._require_bound(self.model, state)
        return arrays, state

    @contextmanager
    def _mended_by_resuming(self):
        """Inside, an error of the file of the chosen parameters says how to make it again."""
        try:
            yield
        except NewerFormatError:
            raise
        except CheckpointError as error:
            again = f"{self.resume_command()} makes it again from the epochs"
            if not self.epoch_files():
                again = "make the run again: import it, merge it, or train it"
            raise CheckpointError(f"{error}. Once it is out of the way, {again}") from error

    def load_parameters(self, read=load_checkpoint):
        """(arrays, origin) of the chosen parameters or, while training, the newest checkpoint.

        Args:
            read: of the chosen ones, as for :meth:`load_chosen`.

        Raises:
            RunError: there are none, or they are not of the model of this folder.
        """
        if (chosen := self.load_chosen(read)) is not None:
            arrays, state = chosen
            origin = state["origin"]
        elif (newest := self.load_newest_checkpoint()) is not None:
            arrays, state = newest
            origin = checkpoint_path(self.checkpoints, state["step"]).stem
        else:
            raise RunError(f"{self.path} has no model.npz and no whole checkpoint yet")
        require_size(self.path, self.load_config()[0], arrays)
        return arrays, origin

    def load_trained(self, device="auto"):
        """(model, origin), the parameters those of :meth:`load_parameters`.

        Adapters are merged with what they adapt: the model has none.

        Args:
            device: a Device or its name.

        Raises:
            RunError, OSError: a file of the folder is missing or damaged, or two do not belong
                together.
            DeviceError: the device is not usable.
        """
        config, _ = self.load_config()
        arrays, origin = self.load_parameters(open_checkpoint)
        if config.adapted:
            plain = config.without_adapters()
            adapted, _ = open_checkpoint(self.beginning)
            require_size(self.beginning, plain, adapted)
            model = new_model(plain, seed=None, device=select_device(device))
            load_model_arrays(model, adapted, where=self.beginning)
            with self._mended_by_resuming() if self.model.exists() else nullcontext():
                merge_adapters(model, arrays)
            return model, origin
        model = new_model(config, seed=None, device=select_device(device))
        with self._mended_by_resuming() if self.model.exists() else nullcontext():
            load_model_arrays(model, arrays)  # one by one, so that memory has them once
        return model, origin

    def load(self, path):
        """(arrays, state) of one of the folder's checkpoints.

        Raises:
            RunError: it is missing or damaged, or it is of another run.
        """
        try:
            arrays, state = load_checkpoint(path)
        except FileNotFoundError as error:
            raise RunError(f"{path} is missing; {FROM_A_COPY}") from error
        except NewerFormatError:
            raise
        except CheckpointError as error:
            raise CheckpointError(f"{error}; {FROM_A_COPY}") from error
        self._require_bound(path, state)
        return arrays, state

    def require_bound(self):
        """Refuse to go on where any of the checkpoints is of another run; damaged ones aside.

        Raises:
            RunError: which says what differs.
        """
        for path in [*checkpoints(self.checkpoints), *self.epoch_files(), self.model]:
            try:
                state = load_state(path)
            except (CheckpointError, FileNotFoundError):
                continue
            self._require_bound(path, state)

    def _save(self, path, arrays, state):
        save_checkpoint(path, arrays, state | (self.bound.as_state() if self.bound else {}))

    def _require_bound(self, path, state):
        """Refuse what has the name of another file, or is bound to something else."""
        for files in (STEPS, EPOCHS):
            number, value = files.number(path.name), state.get(files.counter)
            if number is not None and value != number:
                raise RunError(
                    f"{path} is of {files.counter} {reprlib.repr(value)}; give it its name back"
                )
        if self.bound is None:
            return
        noted = Binding.noted_in(path, state)
        if noted is None:
            warnings.warn(  # at the same place for every file, so that it is shown once
                f"{self.path} is of an older release, which did not note what belongs to it: that "
                "configuration, vocabulary and text are those of its training cannot be checked",
                stacklevel=1,
            )
        elif differences := self.bound.differences(noted):
            raise RunError(
                f"{self.path}: {'; '.join(differences)} (says {path.name}). Undo the change, or "
                "take all files of the folder from one run"
            )
