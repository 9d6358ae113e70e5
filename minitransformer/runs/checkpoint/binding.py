"""What the weights of a model mean nothing without: its configuration, vocabulary, recipe and text.

Weights of the same shapes fit another number of heads, another vocabulary of the same size, and the
run beside; they translate then, only worse. So every checkpoint of a run notes what it is bound to,
and whoever reads it compares that with what is there:

    model       its kind and its configuration        to translate, and to train on
    vocabulary  SHA-256 of vocabulary.model           to translate, and to train on
    recipe      the fields that decide a training     to train on
    texts       what the texts of each split are      to train on
    own         SHA-256 of own.py, if there is one    to train on
    beginning   SHA-256 of beginning.npz, likewise    to train on
"""

import reprlib
from dataclasses import asdict, dataclass

from minitransformer.runs.checkpoint.fields import require_fields

BOUND = "bound"  # where a state has it


@dataclass(frozen=True)
class Binding:
    """What a model is bound to; None for what is not known or does not matter where it is read.

    Attributes:
        model: its kind and the fields of its configuration, by name.
        vocabulary: the SHA-256 of its vocabulary file.
        recipe: the fields of its recipe that change what a training comes to, by name.
        texts: a description of the texts of ``"training"`` and ``"validation"``, which differs
            where they differ.
        own: the SHA-256 of the learner's functions it is trained with, empty without any.
        beginning: that of the parameters it began with, empty where they were random.
    """

    model: dict | None = None
    vocabulary: str | None = None
    recipe: dict | None = None
    texts: dict | None = None
    own: str | None = None
    beginning: str | None = None

    @classmethod
    def noted_in(cls, path, state):
        """That of the checkpoint ``path``, from its state; None where an older release wrote it.

        Raises:
            CheckpointError: what the state says of it is of the wrong kind.
        """
        if BOUND not in state:
            return None
        kinds = dict(model=dict, vocabulary=str, recipe=dict, texts=dict)
        noted = require_fields(f"{path}, {BOUND}", state[BOUND], **kinds)
        files = dict(own=str, beginning=str)
        noted = {"own": "", "beginning": "", **noted}
        require_fields(f"{path}, {BOUND}", noted, **files)
        return cls(**{name: noted[name] for name in (*kinds, *files)})

    def as_state(self):
        """What :meth:`noted_in` reads, to be put into the state of a checkpoint."""
        return {BOUND: asdict(self)}

    def differences(self, noted):
        """How what is here differs from what a checkpoint ``noted``, a list of sentences.

        A field that the checkpoint does not know, because a newer release added it, counts for
        nothing.
        """
        found = []
        for part in ("model", "recipe"):
            for name, here, then in differing(getattr(self, part), getattr(noted, part)):
                found.append(
                    f"config.json says {name} {here}, the checkpoint was trained with {then}"
                )
        if self.vocabulary not in (None, noted.vocabulary):
            found.append(
                "vocabulary.model is not the one it was trained with: SHA-256 "
                f"{self.vocabulary}, and not {_shown(noted.vocabulary)}"
            )
        for file, here, then in (
            ("own.py", self.own, noted.own),
            ("beginning.npz", self.beginning, noted.beginning),
        ):
            if here not in (None, then):
                is_here = f"{file} has SHA-256 {here}" if here else f"{file} is missing"
                was = f"with one of SHA-256 {_shown(then)}" if then else "without one"
                found.append(f"{is_here}, and the run was trained {was}")
        for name, here, then in differing(self.texts, noted.texts):
            found.append(f"the {name} text has changed: it is {here}, and was {then}")
        return found


def differing(here, then):
    """(name, value, other value) of the entries of ``then`` that are others in the dict ``here``.

    The values are as they are to be printed. Without ``here`` nothing differs.
    """
    return [
        (name, _shown(here.get(name, "nothing")), _shown(value))
        for name, value in then.items()
        if here is not None and (name not in here or here[name] != value)
    ]


def _shown(value):
    return value[:120] if isinstance(value, str) else reprlib.repr(value)
