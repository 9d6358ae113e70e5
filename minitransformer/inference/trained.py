"""A trained model together with what its run keeps: what all that work with one have in common."""

from typing import ClassVar

import numpy as np

from minitransformer.core.backend import to_host
from minitransformer.core.errors import DivergedError
from minitransformer.core.workers import ONE_WORKER
from minitransformer.data.text.characters import load_vocabulary, save_vocabulary
from minitransformer.data.text.vocabulary import UNK, Vocabulary
from minitransformer.runs.attachments import KeptFile
from minitransformer.runs.checkpoint.file import RunError
from minitransformer.runs.run_folder import RunFolder

# What every run keeps that is trained on text.
OF_TEXT = {"vocabulary": KeptFile("vocabulary.model", save_vocabulary, load_vocabulary)}


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


class TrainedOnText(Trained):
    """What works with a model that was trained on text.

    Args:
        model, origin: as for :class:`Trained`.
        vocabulary: what it was trained with.

    Attributes:
        read_vocabulary: what reads the file of its vocabulary.
    """

    kept_files = OF_TEXT
    read_vocabulary = staticmethod(Vocabulary.load)

    def __init__(self, model, vocabulary, origin=""):
        super().__init__(model, origin)
        self.vocabulary = vocabulary

    @classmethod
    def read_kept(cls, run, config):
        file = run.attached["vocabulary"]
        vocabulary = cls.read_vocabulary(file)
        if len(vocabulary) not in config.vocabulary_sizes():
            sizes = " and ".join(map(str, sorted(config.vocabulary_sizes())))
            raise RunError(
                f"{file} has {len(vocabulary)} pieces and the model of {run.config} "
                f"{sizes}; take both from one run"
            )
        return (vocabulary,)

    def words(self, text):
        """What a text is made of that the vocabulary has or has not."""
        return text.split()

    def unknown(self, text):
        """The words of a text that the vocabulary has not, in order, each once."""
        words = dict.fromkeys(self.words(text))
        return [word for word in words if UNK in self.vocabulary.encode(word)]

    def logits(self, ids):
        """What the model says of ids (B, T), on the host; of NaN it raises a DivergedError."""
        with self.model.device.as_current():
            logits = to_host(self.model.forward(ids)[0])
        return require_numbers(logits)


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
