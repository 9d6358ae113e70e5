"""The folder of one training run: :mod:`minitransformer.runs.paths` says what is in it.

What is read may be from anywhere: nothing in the folder is trusted, and only regular files are
opened.
"""

from minitransformer.runs.attachments import OF_TRAINING, keep
from minitransformer.runs.checkpoint import RunError
from minitransformer.runs.guard import GuardedRun


class RunFolder(GuardedRun):
    """What is read from and written to a run folder, with what the run keeps beside parameters."""

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
