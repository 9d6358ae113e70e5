"""Where everything in the folder of a run is, and what its config.json says.

config.json         the model's configuration, the recipe, and how it was begun: see save_config
vocabulary.model    the subwords, a sentencepiece model; what a run keeps, its task says
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
"""

import json
import shlex
from contextlib import suppress
from pathlib import Path

from minitransformer.core.regular_file import read_regular
from minitransformer.models.registry import config_of
from minitransformer.runs.attachments import OF_TRAINING, save_bytes
from minitransformer.runs.checkpoint.fields import count, require_fields
from minitransformer.runs.checkpoint.file import RunError
from minitransformer.runs.run_log import RunLog

RUNS = Path("runs")  # where runs are, unless somebody says otherwise
MOST = 10**6  # bytes of config.json


class RunPaths:
    """The paths of a run folder, and its configuration.

    Args:
        path: the folder.
        kept: what every run of its task has, a KeptFile by its name.

    Attributes:
        attached: the paths of these, and of what a training may have, by the names in checkpoints.
        written: those of the files of a training, but for pictures, in the folder itself.
    """

    def __init__(self, path, kept=None):
        self.path, self.kept = Path(path), kept or {}
        self.attached = {name: self.path / f.name for name, f in (self.kept | OF_TRAINING).items()}
        self.own, self.beginning = self.attached["own"], self.attached["beginning"]
        self.config = self.path / "config.json"
        self.log = RunLog(self.path / "metrics.jsonl")
        self.package_log = RunLog(self.path / "package.jsonl")
        self.certificate = self.path / "certificate.md"
        self.checkpoints = self.path / "checkpoints"
        self.epochs = self.path / "epochs"
        self.model = self.path / "model.npz"
        self.written = [self.log.path, self.model, self.package_log.path, self.certificate]
        self.pictures = [self.path / "loss.png", self.path / "learning_rate.png"]

    def exists(self):
        """Whether the folder holds a run: config.json is the last of what makes it one."""
        return self.config.exists()

    def is_unfinished(self):
        """Whether a training was begun here and has not come to its end."""
        if not self.exists():
            return False
        ends = [self.model, *([self.certificate] if self.is_trained_on_own() else [])]
        return not all(path.exists() for path in ends)

    def is_trained_on_own(self):
        """Whether it was begun on the functions in own.py; one laid there later does not count."""
        return self.own.exists() and self._begun().get("anyway", False) is not None

    def resume_command(self, processes=None):
        """What to type to go on with the run, and with functions as wrong.

        Args:
            processes: in how many; None for as many as it was begun in.
        """
        begun = self._begun()
        processes = processes or begun.get("processes")
        mpiexec = f"mpiexec -n {processes} " if count(processes) and processes > 1 else ""
        own = f" --own {shlex.quote(str(self.own))}" if self.is_trained_on_own() else ""
        anyway = " --anyway" if own and begun.get("anyway") is True else ""
        folder = shlex.quote(str(self.path))
        return f"{mpiexec}minitransformer train --resume {folder}{own}{anyway}"

    def save_config(self, model_config, recipe, **begun):
        """Write the configuration of the model, the recipe, a dict, and how the run was begun.

        Args:
            begun: ``begun_on``, ``"cpu"`` or ``"cuda"``; ``processes``, how many; and ``anyway``,
                whether with a learner's functions that are wrong, None without any of a learner's.
        """
        sections = {"model": model_config.as_dict(), "recipe": recipe, **begun}
        save_bytes(self.config, f"{json.dumps(sections, indent=1)}\n".encode())

    def save_recipe(self, recipe):
        """Write another recipe, a dict, such as that of a run whose data have moved."""
        config, _, begun = self._loaded_config()
        self.save_config(config, recipe, **begun)

    def load_config(self):
        """The configuration of the model and the recipe, a dict.

        Raises:
            RunError: this is no run folder, or its configuration is damaged.
            OSError: config.json is no file to be read: see :func:`read_regular`.
        """
        config, recipe, _ = self._loaded_config()
        return config, recipe

    def begun_on(self):
        """``"cpu"`` or ``"cuda"``, where the run was begun; it raises as :meth:`load_config`.

        Runs that do not say count as begun on a CPU.
        """
        *_, begun = self._loaded_config()
        return "cuda" if begun.get("begun_on") == "cuda" else "cpu"

    def _begun(self):
        """How the run was begun; empty where config.json cannot say."""
        with suppress(RunError, OSError):
            *_, begun = self._loaded_config()
            return begun
        return {}

    def _loaded_config(self):
        try:
            sections = json.loads(read_regular(self.config, MOST).decode())
            require_fields(self.config, sections, model=dict, recipe=dict)
            return config_of(sections.pop("model")), sections.pop("recipe"), sections
        except FileNotFoundError as error:
            missing = "it has no config.json" if self.path.is_dir() else "there is no such folder"
            usual = RUNS / self.path
            hint = f"; did you mean {usual}?" if (usual / self.config.name).is_file() else ""
            raise RunError(f"{self.path} is no run folder: {missing}{hint}") from error
        except (ValueError, TypeError, RecursionError) as error:
            raise RunError(f"{self.config} is damaged: {error}") from error
