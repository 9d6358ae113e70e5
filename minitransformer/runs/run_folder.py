"""The folder of one training run: :mod:`minitransformer.runs.paths` says what is in it.

What is read may be from anywhere: nothing in the folder is trusted, and only regular files are
opened.

The process that writes may be killed at any moment. So a file is written under another name first
and then renamed, or, as the metrics are, only ever grows; and config.json, which makes the folder a
run, comes after all that the run keeps.

What a user keeps in the folder is the user's: a run begins in no folder that holds anything else
than what a run killed before its config.json leaves, nor beside a file that only some runs have
where it has none itself, and it only ever removes files of exactly the names that it writes.
"""

import itertools
import re
import shutil
from contextlib import suppress

from minitransformer.core.regular_file import open_regular, written_whole
from minitransformer.runs.attachments import OF_TRAINING, keep
from minitransformer.runs.checkpoint.file import RunError, load_state
from minitransformer.runs.checkpoint.folder import EPOCHS, STEPS, checkpoints
from minitransformer.runs.lock import NAME as LOCK
from minitransformer.runs.parameters import RunParameters

# What a process killed while it writes leaves has the name of a file, its own number and .tmp.
HALF = re.compile(r"\.\d+\.tmp$")


class RunFolder(RunParameters):
    """What is read from and written to a run folder, and kept apart from what is a user's."""

    def keep(self, **things):
        """Write what the run keeps, by its name in a checkpoint; None is not kept.

        Raises:
            RunError: there is another one.
            OSError: there is something that is no file to be read: see :func:`open_regular`.
        """
        for name, what in things.items():
            if what is not None:
                keep(self.attached[name], (self.kept | OF_TRAINING)[name], what)

    def load_kept(self, name):
        """What the run keeps by that name, or None where the training has none.

        Raises:
            ExplainedError, OSError: it is damaged, or missing where every run has one.
        """
        if name in OF_TRAINING and not self.attached[name].exists():
            return None
        return (self.kept | OF_TRAINING)[name].load(self.attached[name])

    def require_kept(self, own):
        """Let a training go on with the learner's functions that it was begun with alone.

        Args:
            own: what stands in, an OwnFile, or None.

        Raises:
            RunError: it is another one; or there should be none, or one.
            OSError: as for :meth:`keep`.
        """
        there = self.load_kept("own")
        if there is None and own:
            raise RunError(
                f"{self.path} has no own.py: it is trained on the package's functions, or has "
                "lost the file. Leave out --own, or put the file back"
            )
        if there != (own and own.content):
            differs = f"{own.path} differs from it" if own else "code only runs when you say so"
            raise RunError(
                f"{self.path} is trained on the functions in {self.own}, and {differs}; go on: "
                f"{self.resume_command()}"
            )

    def require_free(self, **brought):
        """Let a new run begin here only if nothing is there, or what one that was killed left.

        Args:
            brought: by its name in a checkpoint what a training may have and the run is to keep;
                of what is not here, no file may be left.

        Raises:
            RunError: something else is there; says what.
        """
        # Looked at before: a training that begins meanwhile makes a run of it, and nothing else.
        inside = list(self.path.iterdir()) if self.path.is_dir() else []
        if self.exists():
            raise RunError(f"{self.path} holds a run already")
        if self.path.is_symlink() and not self.path.exists():
            raise RunError(f"{self.path} is a link to {self.path.readlink()}, where nothing is")
        if self.path.exists() and not self.path.is_dir():
            raise RunError(f"{self.path} is a file, and a run is a folder")
        others = sorted(path.name for path in inside if not self._is_before_config(path))
        if others:
            held = ", ".join(others[:5]) + (", …" if len(others) > 5 else "")
            raise RunError(
                f"{self.path} is neither empty nor a run: it holds {held}, and no config.json. "
                "If it is a run, put its config.json back; if not, a new run would mix its files "
                "with these"
            )
        for name, file in OF_TRAINING.items():
            if self.attached[name].exists() and not brought.get(name):
                raise RunError(
                    f"{self.attached[name]} is there already, and a run begun without "
                    f"{file.option} would take it for its own when it is resumed: move it away"
                )

    def leftovers(self):
        """The files that processes killed while they wrote them have left half written."""
        ours = {self.path: self._names(), self.checkpoints: STEPS, self.epochs: EPOCHS}
        return [
            path
            for folder, names in ours.items()
            for path in folder.glob("*.tmp")
            if HALF.search(path.name) and HALF.sub("", path.name) in names and path.is_file()
        ]

    def create(self):
        """Make the folder and those in it, where missing; remove what a killed process left."""
        for folder in (self.checkpoints, self.epochs):
            folder.mkdir(parents=True, exist_ok=True)
        for path in self.leftovers():
            path.unlink()

    def require_untrained(self):
        """Refuse to begin at the first step where there is something left of a training.

        Raises:
            RunError: which says what is left, and how to begin again.
        """
        found = [*checkpoints(self.checkpoints), *self.epoch_files()]
        if next(iter(self.log), None):
            found.insert(0, self.log.path)
        if found:
            left = ", ".join(str(path.relative_to(self.path)) for path in found)
            raise RunError(
                f"{self.path} was trained, and none of its checkpoints is whole or left; there is "
                f"{left}. Put a checkpoint back from a copy, or begin at the first step: "
                f"{self.resume_command()} --start-over, which sets these aside"
            )

    def set_aside(self):
        """Move all that was trained into a new folder in this one, ``before-1``; returns its path.

        With copies of the configuration and of what the run keeps it is a run folder of its own.

        Raises:
            CheckpointError: beginning.npz is damaged.
            OSError: a file cannot be moved or copied, or is none to be read.
        """
        if self.beginning.exists():
            load_state(self.beginning)  # before anything is moved
        paths = (self.path / f"before-{number}" for number in itertools.count(1))
        aside = next(path for path in paths if not path.exists())
        aside.mkdir()
        begun_with = [self.beginning] if self.beginning.exists() else []
        for path in (self.config, *(self.attached[name] for name in self.kept), *begun_with):
            with open_regular(path) as file, written_whole(aside / path.name) as copy:
                shutil.copyfileobj(file, copy)
        # The checkpoints first: whatever stays, if this is cut off, is no training to begin with.
        for path in (self.checkpoints, self.epochs, *self.written, self.own):
            with suppress(FileNotFoundError):
                path.rename(aside / path.name)
        self.create()
        return aside

    def _names(self):
        """Those of the files that are written into the folder itself."""
        paths = [self.config, *self.attached.values(), *self.written, *self.pictures]
        return {"explorer.html", *(path.name for path in paths)}

    def _is_before_config(self, path):
        """Whether this may be in the folder of a run that was killed before its config.json."""
        if path in (self.checkpoints, self.epochs):
            return path.is_dir() and not any(path.iterdir())
        kept = {attached.name for attached in self.attached.values()}
        half = HALF.search(path.name) and HALF.sub("", path.name) in {self.config.name, *kept}
        ours = half or path.name in {LOCK, *kept}
        return bool(ours) and path.is_file() and not path.is_symlink()
