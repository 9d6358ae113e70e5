"""Where everything in the folder of a run is, and what its config.json says.

config.json         the model's configuration, the recipe, and where it was begun, CPU or GPU
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
from pathlib import Path

from minitransformer.core.regular_file import read_regular
from minitransformer.models.registry import config_of
from minitransformer.runs.attachments import OF_TEXT, OF_TRAINING, save_bytes
from minitransformer.runs.checkpoint import RunError
from minitransformer.runs.checkpoint.fields import require_fields
from minitransformer.runs.run_log import RunLog

RUNS = Path("runs")  # where runs are, unless somebody says otherwise
MOST = 10**6  # bytes of config.json


class RunPaths:
    """The paths of a run folder, and its configuration.

    Args:
        path: the folder.
        kept: a KeptFile by its name for all that every run of its task has.

    Attributes:
        attached: the paths of these, and of what a training may have, by the names in checkpoints.
    """

    def __init__(self, path, kept=OF_TEXT):
        self.path, self.kept = Path(path), kept
        self.attached = {name: self.path / f.name for name, f in (kept | OF_TRAINING).items()}
        self.vocabulary = self.attached.get("vocabulary")  # of a run on text
        self.own, self.beginning = self.attached["own"], self.attached["beginning"]
        self.config = self.path / "config.json"
        self.log = RunLog(self.path / "metrics.jsonl")
        self.package_log = RunLog(self.path / "package.jsonl")
        self.certificate = self.path / "certificate.md"
        self.checkpoints = self.path / "checkpoints"
        self.epochs = self.path / "epochs"
        self.model = self.path / "model.npz"
        self.pictures = [self.path / "loss.png", self.path / "learning_rate.png"]

    def exists(self):
        """Whether the folder holds a run: config.json is the last of what makes it one."""
        return self.config.exists()

    def is_unfinished(self):
        """Whether a training was begun here and has not come to its end."""
        ends = [self.model, *([self.certificate] if self.own.exists() else [])]
        return self.exists() and not all(path.exists() for path in ends)

    def resume_command(self):
        """What to type to go on with the run."""
        own = f" --own {shlex.quote(str(self.own))}" if self.own.exists() else ""
        return f"minitransformer train --resume {shlex.quote(str(self.path))}{own}"

    def save_config(self, model_config, recipe, begun_on="cpu"):
        """Write the configuration of the model, the recipe, a dict, and ``"cpu"`` or ``"cuda"``."""
        sections = {"model": model_config.as_dict(), "recipe": recipe, "begun_on": begun_on}
        save_bytes(self.config, f"{json.dumps(sections, indent=1)}\n".encode())

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
        return self._loaded_config()[2]

    def _loaded_config(self):
        try:
            sections = json.loads(read_regular(self.config, MOST).decode())
            require_fields(self.config, sections, model=dict, recipe=dict)
            begun_on = "cuda" if sections.get("begun_on") == "cuda" else "cpu"
            return config_of(sections["model"]), sections["recipe"], begun_on
        except FileNotFoundError as error:
            missing = "it has no config.json" if self.path.is_dir() else "there is no such folder"
            usual = RUNS / self.path
            hint = f"; did you mean {usual}?" if (usual / self.config.name).is_file() else ""
            raise RunError(f"{self.path} is no run folder: {missing}{hint}") from error
        except (ValueError, TypeError, RecursionError) as error:
            raise RunError(f"{self.config} is damaged: {error}") from error
