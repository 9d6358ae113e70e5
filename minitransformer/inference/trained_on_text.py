"""A trained model together with the vocabulary of its run: what all that work with text share."""

from minitransformer.core.backend import to_host
from minitransformer.data.text.characters import load_vocabulary, save_vocabulary
from minitransformer.data.text.vocabulary import Vocabulary
from minitransformer.inference.trained import Trained, require_numbers
from minitransformer.runs.attachments import KeptFile
from minitransformer.runs.checkpoint.file import RunError

# What every run keeps that is trained on text.
OF_TEXT = {"vocabulary": KeptFile("vocabulary.model", save_vocabulary, load_vocabulary)}


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
        unknown = self.vocabulary.unknown
        words = dict.fromkeys(self.words(text) if unknown is not None else ())
        return [word for word in words if unknown in self.vocabulary.encode(word)]

    def logits(self, ids):
        """What the model says of ids (B, T), on the host; of NaN it raises a DivergedError."""
        with self.model.device.as_current():
            logits = to_host(self.model.forward(ids)[0])
        return require_numbers(logits)
