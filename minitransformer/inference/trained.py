"""A trained model together with its vocabulary: what all that work with one have in common."""

from typing import ClassVar

from minitransformer.data.text.vocabulary import Vocabulary
from minitransformer.runs.checkpoint import RunError
from minitransformer.runs.run_folder import RunFolder


class Trained:
    """The base of what works with a trained model; a subclass says for which task it was trained.

    Args:
        model: a Model of this task.
        vocabulary: what it was trained with.
        origin: what its parameters are, in words.

    Attributes:
        task: as in the model's configuration.
        purpose: what the model is for, to end a sentence with: ``"to translate"``.
        read_vocabulary: what reads the file of its vocabulary.
    """

    task: ClassVar[str]
    purpose: ClassVar[str]
    read_vocabulary = staticmethod(Vocabulary.load)

    def __init__(self, model, vocabulary, origin=""):
        self.model, self.vocabulary, self.origin = model, vocabulary, origin

    @classmethod
    def load(cls, path, device="auto", **options):
        """The model in a run folder; while it trains, that of the newest checkpoint.

        Args:
            path: the run folder.
            device: a Device or its name.
            options: as for the class.

        Raises:
            RunError, VocabularyError, OSError: a file of the folder is missing or damaged,
                or two do not belong together; or the model was trained for another task.
            DeviceError: the device is not usable.
            MissingLibraryError: there is no sentencepiece, and the model takes subwords.
        """
        run = RunFolder(path)
        config, _ = run.load_config()
        if config.task != cls.task:
            raise RunError(
                f"{run.path} is a model of kind {config.kind!r}, trained for {config.task!r}, "
                f"not {cls.purpose}"
            )
        run.bind()
        return cls(*with_vocabulary(run, device, cls.read_vocabulary), **options)


def with_vocabulary(run, device="auto", read=Vocabulary.load):
    """(model, vocabulary, origin) of the run on text in a RunFolder.

    Args:
        device: a Device or its name.
        read: what reads the file of the vocabulary.

    Raises:
        RunError, VocabularyError, OSError, DeviceError, MissingLibraryError: as for
            :meth:`Trained.load`.
    """
    model, origin = run.load_trained(device)
    vocabulary = read(run.vocabulary)
    if len(vocabulary) not in model.config.vocabulary_sizes():
        sizes = " and ".join(map(str, sorted(model.config.vocabulary_sizes())))
        raise RunError(
            f"{run.vocabulary} has {len(vocabulary)} pieces and the model of {run.config} {sizes}; "
            "take both from one run"
        )
    return model, vocabulary, origin
