"""All that one training is: what it trains, where, on what and with whom."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from minitransformer.core.backend import Device
from minitransformer.models.registry import config_class
from minitransformer.parallel.alone import ALONE, Alone
from minitransformer.parallel.first import OnFirst
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.task import task_class
from minitransformer.training.pretrained import Pretrained
from minitransformer.training.progress import Progress
from minitransformer.training.recipe import Recipe


@dataclass(frozen=True)
class Job:
    """A training that is to be begun, or to go on.

    Attributes:
        recipe: that of the run.
        path: of the run's folder.
        device: of this process.
        progress: is told what is read, left out and learned.
        own: the OwnFile that stands in, of which the run keeps a copy, or None.
        pretrained: what a new run has in place of random parameters and of what it would keep
            itself, or None.
        start_over: whether a run that is there begins again; what was trained is set aside.
        processes: those that share the training.
    """

    recipe: Recipe
    path: str | Path
    device: Device
    progress: Progress
    own: object = None
    pretrained: Pretrained | None = None
    start_over: bool = False
    processes: Alone = ALONE

    @property
    def task(self):
        """The class of the task that the model is trained for."""
        return task_class(config_class(self.recipe.model["kind"]))

    @cached_property
    def folder(self):
        """The RunFolder, for what the first process does alone."""
        return RunFolder(self.path, self.task.kept_files)

    @cached_property
    def run(self):
        """The folder for all processes: its methods run in the first, and all get the result."""
        return OnFirst(self.folder, self.processes) if self.processes.count > 1 else self.folder
