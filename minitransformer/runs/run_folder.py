"""The folder of one training run.

config.json         the model's configuration, the recipe, and where it was begun, CPU or GPU
vocabulary.model    the subwords, a sentencepiece model
own.py              a learner's functions to train with, if any; runs only where --own names it
beginning.npz       parameters of another run that this one began with, if it did
metrics.jsonl       the log, see :class:`RunLog`
checkpoints/        step-00001234.npz, all that a resume needs, from step 0 on; the newest two
epochs/             epoch-0003.npz, the parameters after an epoch; the last ones and the best
model.npz           the chosen parameters, once the training is done
loss.png, …         the curves of the log, ``pictures``
package.jsonl       with an own.py: how the package's functions begin, from the same seed
certificate.md      with an own.py: whose functions ran, and what came of it
training.lock       while a training is under way; see :mod:`minitransformer.runs.lock`

Each of the .npz files notes what it is bound to, its :class:`Binding`. What is read may be from
anywhere: nothing in the folder is trusted, and only regular files are opened.

The process that writes may be killed at any moment. So a file is written under another name first
and then renamed, or, as the metrics are, only ever grows; and config.json, which makes the folder a
run, comes after the vocabulary and own.py.

What a user keeps in the folder is the user's: a run begins in no folder that holds anything else
than what a run killed before its config.json leaves, nor beside an own.py or a beginning.npz where
it has none itself, and it only ever removes files of exactly the names that it writes.
"""

import hashlib
import itertools
import json
import re
import reprlib
import shlex
import shutil
import warnings
from contextlib import suppress
from pathlib import Path

from minitransformer.core.backend import select_device
from minitransformer.core.regular_file import open_regular, read_regular, written_whole
from minitransformer.data.text.characters import load_vocabulary
from minitransformer.data.text.vocabulary import LARGEST
from minitransformer.models.registry import config_of, new_model
from minitransformer.runs.checkpoint import (
    Binding,
    CheckpointError,
    NewerFormatError,
    checkpoint_path,
    checkpoints,
    load_checkpoint,
    load_model_arrays,
    load_newest,
    load_state,
    model_arrays,
    prune,
    require_size,
    save_checkpoint,
)
from minitransformer.runs.checkpoint.fields import number, require_fields
from minitransformer.runs.run_log import RunLog

RUNS = Path("runs")  # where runs are, unless somebody says otherwise
MOST_CONFIG = MOST_OWN = 10**6  # bytes
NUMBERED = re.compile(r"(step|epoch)-([0-9]{4,})\.npz")

# What a process killed while it writes leaves, in the folders that it leaves it in.
LEFTOVERS = {
    "": r"(config\.json|vocabulary\.model|own\.py|beginning\.npz|metrics\.jsonl|model\.npz|"
    r"package\.jsonl|certificate\.md|loss\.png|learning_rate\.png|explorer\.html)\.\d+\.tmp",
    "checkpoints": r"step-\d{8,}\.npz\.\d+\.tmp",
    "epochs": r"epoch-\d{4,}\.npz\.\d+\.tmp",
}
# What is there before config.json makes the folder a run; both folders are still empty then.
BEFORE_CONFIG = (
    r"training\.lock|(vocabulary\.model|own\.py|beginning\.npz)(\.\d+\.tmp)?|"
    r"config\.json\.\d+\.tmp"
)
EMPTY_BEFORE_CONFIG = {"checkpoints", "epochs"}


class RunFolder:
    """The paths of a run folder, and what is read from and written to them.

    Attributes:
        bound: the Binding that all that is saved notes, and that all that is loaded has to have;
            None until :meth:`bind`.
    """

    def __init__(self, path):
        self.path = Path(path)
        self.bound = None
        self.config = self.path / "config.json"
        self.vocabulary = self.path / "vocabulary.model"
        self.own = self.path / "own.py"
        self.beginning = self.path / "beginning.npz"
        self.log = RunLog(self.path / "metrics.jsonl")
        self.package_log = RunLog(self.path / "package.jsonl")
        self.certificate = self.path / "certificate.md"
        self.checkpoints = self.path / "checkpoints"
        self.epochs = self.path / "epochs"
        self.model = self.path / "model.npz"
        self.pictures = [self.path / "loss.png", self.path / "learning_rate.png"]

    def require_free(self, own=None, beginning=None):
        """Let a new run begin here only if nothing is there, or what one that was killed left.

        Args:
            own, beginning: the learner's functions and the Beginning that the run is to keep, if
                any; of a run with none, none may be left.

        Raises:
            CheckpointError: something else is there; says what.
        """
        if self.config.exists():
            raise CheckpointError(f"{self.path} holds a run already")
        if self.path.is_symlink() and not self.path.exists():
            raise CheckpointError(
                f"{self.path} is a link to {self.path.readlink()}, where nothing is"
            )
        if self.path.exists() and not self.path.is_dir():
            raise CheckpointError(f"{self.path} is a file, and a run is a folder")
        inside = self.path.iterdir() if self.path.exists() else []
        others = sorted(path.name for path in inside if not _before_config(path))
        if others:
            held = ", ".join(others[:5]) + (", …" if len(others) > 5 else "")
            raise CheckpointError(
                f"{self.path} is neither empty nor a run: it holds {held}, and no config.json. "
                "If it is a run, put its config.json back; if not, a new run would mix its files "
                "with these"
            )
        for path, kept, option in ((self.own, own, "--own"), (self.beginning, beginning, "--from")):
            if path.exists() and not kept:
                raise CheckpointError(
                    f"{path} is there already, and a run begun without {option} would take it for "
                    "its own when it is resumed: move it away"
                )

    def resume_command(self):
        """What to type to go on with the run."""
        own = f" --own {shlex.quote(str(self.own))}" if self.own.exists() else ""
        return f"minitransformer train --resume {shlex.quote(str(self.path))}{own}"

    def is_unfinished(self):
        """Whether a training was begun here and has not come to its end."""
        ends = [self.model, *([self.certificate] if self.own.exists() else [])]
        return self.config.exists() and not all(path.exists() for path in ends)

    def leftovers(self):
        """The files that processes killed while they wrote them have left half written."""
        return [
            path
            for folder, leftover in LEFTOVERS.items()
            for path in (self.path / folder).glob("*.tmp")
            if re.fullmatch(leftover, path.name) and path.is_file()
        ]

    def create(self):
        """Make the folder and those in it, where missing; remove what a killed process left."""
        for folder in LEFTOVERS:
            (self.path / folder).mkdir(parents=True, exist_ok=True)
        for path in self.leftovers():
            path.unlink()

    def save_config(self, model_config, recipe, begun_on="cpu"):
        """Write the configuration of the model, the recipe, a dict, and ``"cpu"`` or ``"cuda"``."""
        sections = {"model": model_config.as_dict(), "recipe": recipe, "begun_on": begun_on}
        text = json.dumps(sections, indent=1)
        _write_whole(self.config, f"{text}\n".encode())

    def load_config(self):
        """The configuration of the model and the recipe, a dict.

        Raises:
            CheckpointError: this is no run folder, or its configuration is damaged.
            OSError: config.json is no file to be read: see :func:`read_regular`.
        """
        config, recipe, _ = self._loaded_config()
        return config, recipe

    def begun_on(self):
        """``"cpu"`` or ``"cuda"``, where the run was begun; it raises as :meth:`load_config`.

        Runs that do not say count as begun on a CPU.
        """
        return self._loaded_config()[2]

    def _loaded_config(self):
        try:
            sections = json.loads(self._config_content().decode())
            require_fields(self.config, sections, model=dict, recipe=dict)
            begun_on = "cuda" if sections.get("begun_on") == "cuda" else "cpu"
            return config_of(sections["model"]), sections["recipe"], begun_on
        except FileNotFoundError as error:
            missing = "it has no config.json" if self.path.is_dir() else "there is no such folder"
            usual = RUNS / self.path
            hint = f"; did you mean {usual}?" if (usual / self.config.name).is_file() else ""
            raise CheckpointError(f"{self.path} is no run folder: {missing}{hint}") from error
        except (ValueError, TypeError, RecursionError) as error:
            raise CheckpointError(f"{self.config} is damaged: {error}") from error

    def save_vocabulary(self, vocabulary):
        """Write a Vocabulary.

        Raises:
            CheckpointError: there is another one.
            OSError: there is something that is no file to be read: see :func:`read_regular`.
        """
        if self.vocabulary.exists() and self._vocabulary_content() != vocabulary.model:
            raise CheckpointError(
                f"{self.vocabulary} is there already, and is not what this training has learned: "
                "move it away, or choose another folder"
            )
        _write_whole(self.vocabulary, vocabulary.model)

    def save_own(self, content):
        """Write a copy of the learner's functions, bytes, that the run is trained with.

        Raises:
            CheckpointError: there is another one.
            OSError: there is something that is no file to be read: see :func:`read_regular`.
        """
        if self.own.exists() and self._own_content() != content:
            raise CheckpointError(
                f"{self.own} is there already, and is another file than yours: move it away, or "
                "choose another folder"
            )
        _write_whole(self.own, content)

    def require_kept(self, own):
        """Let a training go on with the learner's functions that it was begun with alone.

        Args:
            own: what stands in, an OwnFile, or None.

        Raises:
            CheckpointError: it is another one; or there should be none, or one.
            OSError: as for :meth:`save_own`.
        """
        if not self.own.exists():
            if own:
                raise CheckpointError(
                    f"{self.path} has no own.py: it is trained on the package's functions, or has "
                    "lost the file. Leave out --own, or put the file back"
                )
        elif own is None or own.content != self._own_content():
            differs = f"{own.path} differs from it" if own else "code only runs when you say so"
            raise CheckpointError(
                f"{self.path} is trained on the functions in {self.own}, and {differs}; go on: "
                f"{self.resume_command()}"
            )

    def bind(self, recipe=None, texts=None):
        """Set what is ``bound``: configuration and vocabulary as they are in the folder, and these.

        Args:
            recipe, texts: as for :class:`Binding`; None where they do not matter.

        Raises:
            CheckpointError: as for :meth:`load_config`; or beginning.npz is damaged.
            OSError: there is no vocabulary, or it is no file to be read.
        """
        config, _ = self.load_config()
        vocabulary = hashlib.sha256(self._vocabulary_content()).hexdigest()
        own = beginning = None
        if recipe is not None:
            own = hashlib.sha256(self._own_content()).hexdigest() if self.own.exists() else ""
            beginning = _sha256_of_checkpoint(self.beginning) if self.beginning.exists() else ""
        self.bound = Binding(config.as_dict(), vocabulary, recipe, texts, own, beginning)

    def save_checkpoint(self, arrays, state):
        """Write all that a resume needs, then remove all checkpoints but the newest two."""
        self._save(checkpoint_path(self.checkpoints, state["step"]), arrays, state)
        self.prune_checkpoints()

    def prune_checkpoints(self):
        """Remove all checkpoints but the newest two."""
        prune(self.checkpoints, keep=checkpoints(self.checkpoints)[-2:])

    def load_newest_checkpoint(self):
        """(arrays, state) of the newest whole checkpoint, or None.

        Raises:
            NewerFormatError: see :func:`load_newest`.
            CheckpointError: it is of another run.
        """
        newest = load_newest(self.checkpoints)
        if newest is None:
            return None
        path, arrays, state = newest
        self._require_bound(path, state)
        return arrays, state

    def epoch_file(self, epoch):
        """Where the parameters after ``epoch``, counted from 1, are."""
        return self.epochs / f"epoch-{epoch:04}.npz"

    def epoch_files(self):
        """All that there are, the first epoch first; files of other names are somebody else's."""
        epochs = {
            path: int(match[2])
            for path in self.epochs.glob("epoch-*")
            if (match := NUMBERED.fullmatch(path.name)) and path == self.epoch_file(int(match[2]))
        }
        return sorted(epochs, key=epochs.get)

    def save_epoch(self, model, epoch):
        """Write the parameters after ``epoch``."""
        self._save(self.epoch_file(epoch), model_arrays(model), {"epoch": epoch})

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

    def load_chosen(self):
        """(arrays, state) of the chosen parameters, or None as long as there are none.

        Raises:
            CheckpointError: the file is damaged, of another run, or no choice of parameters.
        """
        if not self.model.exists():
            return None
        try:
            arrays, state = load_checkpoint(self.model)
            scores = [name for name in state if name.startswith("validation_")]
            require_fields(self.model, state, origin=str, **dict.fromkeys(scores, number))
            if not scores:
                raise CheckpointError(f"{self.model} is damaged: it has no score")
        except NewerFormatError:
            raise
        except CheckpointError as error:
            raise CheckpointError(
                f"{error}. Once it is out of the way, {self.resume_command()} makes it again from "
                "the epochs"
            ) from error
        self._require_bound(self.model, state)
        return arrays, state

    def load_parameters(self):
        """(arrays, origin) of the chosen parameters or, while training, the newest checkpoint.

        Raises:
            CheckpointError: there are none, or they are not of the model of this folder.
        """
        chosen = self.load_chosen()
        if chosen is not None:
            arrays, state = chosen
            origin = state["origin"]
        elif (newest := self.load_newest_checkpoint()) is not None:
            arrays, state = newest
            origin = checkpoint_path(self.checkpoints, state["step"]).stem
        else:
            raise CheckpointError(f"{self.path} has no model.npz and no whole checkpoint yet")
        require_size(self.path, self.load_config()[0], arrays)
        return arrays, origin

    def load_trained(self, device="auto", read_vocabulary=load_vocabulary):
        """(model, vocabulary, origin), the parameters those of :meth:`load_parameters`.

        Args:
            device: a Device or its name.
            read_vocabulary: what reads its file; by default of any kind.

        Raises:
            CheckpointError, VocabularyError, OSError: a file of the folder is missing or damaged,
                or two do not belong together.
            DeviceError: the device is not usable.
            MissingLibraryError: there is no sentencepiece.
        """
        config, _ = self.load_config()
        arrays, origin = self.load_parameters()
        vocabulary = read_vocabulary(self.vocabulary)
        if len(vocabulary) not in config.vocabulary_sizes():
            sizes = " and ".join(map(str, sorted(config.vocabulary_sizes())))
            raise CheckpointError(
                f"{self.vocabulary} has {len(vocabulary)} pieces and the model of {self.config} "
                f"{sizes}; take both from one run"
            )
        model = new_model(config, device=select_device(device))
        load_model_arrays(model, arrays)
        return model, vocabulary, origin

    def load(self, path):
        """(arrays, state) of one of the folder's checkpoints.

        Raises:
            CheckpointError: it is missing or damaged, or it is of another run.
        """
        try:
            arrays, state = load_checkpoint(path)
        except FileNotFoundError as error:
            raise CheckpointError(f"{path} is missing; take it from a copy of the run") from error
        self._require_bound(path, state)
        return arrays, state

    def require_bound(self):
        """Refuse to go on where any of the checkpoints is of another run; damaged ones aside.

        Raises:
            CheckpointError: which says what differs.
        """
        for path in [*checkpoints(self.checkpoints), *self.epoch_files(), self.model]:
            try:
                state = load_state(path)
            except (CheckpointError, FileNotFoundError):
                continue
            self._require_bound(path, state)

    def require_untrained(self):
        """Refuse to begin at the first step where there is something left of a training.

        Raises:
            CheckpointError: which says what is left, and how to begin again.
        """
        found = [*checkpoints(self.checkpoints), *self.epoch_files()]
        if next(iter(self.log), None):
            found.insert(0, self.log.path)
        if found:
            left = ", ".join(str(path.relative_to(self.path)) for path in found)
            raise CheckpointError(
                f"{self.path} was trained, and none of its checkpoints is whole or left; there is "
                f"{left}. Put a checkpoint back from a copy, or begin at the first step: "
                f"{self.resume_command()} --start-over, which sets these aside"
            )

    def set_aside(self):
        """Move all that was trained into a new folder in this one, ``before-1``; returns its path.

        With a copy of configuration and vocabulary it is a run folder of its own.

        Raises:
            CheckpointError: beginning.npz is damaged.
            OSError: a file cannot be moved or copied, or is none to be read.
        """
        if self.beginning.exists():
            load_state(self.beginning)  # before anything is moved
        paths = (self.path / f"before-{number}" for number in itertools.count(1))
        aside = RunFolder(next(path for path in paths if not path.exists()))
        aside.path.mkdir()
        _write_whole(aside.config, self._config_content())
        _write_whole(aside.vocabulary, self._vocabulary_content())
        if self.beginning.exists():
            with open_regular(self.beginning) as file, written_whole(aside.beginning) as copy:
                shutil.copyfileobj(file, copy)
        # The checkpoints first: whatever stays, if this is cut off, is no training to begin with.
        for path in (
            *(self.checkpoints, self.epochs, self.log.path, self.model),
            *(self.own, self.package_log.path, self.certificate),
        ):
            with suppress(FileNotFoundError):
                path.rename(aside.path / path.name)
        self.create()
        return aside.path

    def _config_content(self):
        return read_regular(self.config, MOST_CONFIG)

    def _vocabulary_content(self):
        return read_regular(self.vocabulary, LARGEST)

    def _own_content(self):
        return read_regular(self.own, MOST_OWN)

    def _save(self, path, arrays, state):
        save_checkpoint(path, arrays, state | (self.bound.as_state() if self.bound else {}))

    def _require_bound(self, path, state):
        """Refuse what has the name of another file, or is bound to something else."""
        if match := NUMBERED.fullmatch(path.name):
            counter, value = match[1], state.get(match[1])
            if value != int(match[2]):
                raise CheckpointError(
                    f"{path} is of {counter} {reprlib.repr(value)}; give it its name back"
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
            raise CheckpointError(
                f"{self.path}: {'; '.join(differences)} (says {path.name}). Undo the change, or "
                "take all files of the folder from one run"
            )


def _before_config(path):
    """Whether this may be in the folder of a run that was killed before it wrote config.json."""
    if path.name in EMPTY_BEFORE_CONFIG:
        return path.is_dir() and not any(path.iterdir())
    ours = re.fullmatch(BEFORE_CONFIG, path.name)
    return bool(ours) and path.is_file() and not path.is_symlink()


def _sha256_of_checkpoint(path):
    load_state(path)  # which finds out at once that a file is far longer than what it holds
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_whole(path, content):
    with written_whole(path) as file:
        file.write(content)
