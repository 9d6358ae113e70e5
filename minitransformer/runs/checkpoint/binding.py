"""What the weights of a model mean nothing without: its configuration, kept files, recipe and data.

Weights of the same shapes fit another number of heads, another vocabulary of the same size, and the
run beside; they answer then, only worse. So every checkpoint of a run notes what it is bound to,
and whoever reads it compares that with what is there:

    model       its kind and its configuration        to use it, and to train on
    vocabulary  SHA-256 of vocabulary.model, and so   to use it, and to train on
                of each file that its task keeps
    recipe      the fields that decide a training     to train on
    texts       what the data of each split are       to train on
    own         SHA-256 of own.py, if there is one    to train on
    beginning   SHA-256 of beginning.npz, likewise    to train on
"""

import reprlib
from dataclasses import dataclass, field

from minitransformer.runs.checkpoint.fields import require_fields

BOUND = "bound"  # where a state has it


@dataclass(frozen=True)
class Binding:
    """What a model is bound to; None for what is not known or does not matter where it is read.

    Attributes:
        model: its kind and the fields of its configuration, by name.
        files: that belong to it, by their names above: the name of the file and its SHA-256, empty
            where there is none.
        recipe: the fields of its recipe that change what a training comes to, by name.
        texts: a description of the data of ``"training"`` and ``"validation"``, which differs
            where they differ.
    """

    model: dict | None = None
    files: dict = field(default_factory=dict)
    recipe: dict | None = None
    texts: dict | None = None

    @classmethod
    def noted_in(cls, path, state):
        """That of the checkpoint ``path``, from its state; None where an older release wrote it.

        The names of files are not noted, and those in ``files`` empty.

        Raises:
            CheckpointError: what the state says of it is of the wrong kind.
        """
        if BOUND not in state:
            return None
        where, kinds = f"{path}, {BOUND}", dict(model=dict, recipe=dict, texts=dict)
        noted = dict(require_fields(where, state[BOUND], **kinds))
        sections = {name: noted.pop(name) for name in kinds}
        require_fields(where, noted, **dict.fromkeys(noted, str))
        return cls(**sections, files={name: ("", sha256) for name, sha256 in noted.items()})

    def as_state(self):
        """What :meth:`noted_in` reads, to be put into the state of a checkpoint."""
        files = {name: sha256 for name, (_, sha256) in self.files.items()}
        return {BOUND: dict(model=self.model, **files, recipe=self.recipe, texts=self.texts)}

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
        for name, (file, here) in self.files.items():
            _, then = noted.files.get(name, ("", ""))
            if here != then:
                is_here = f"{file} has SHA-256 {here}" if here else f"{file} is missing"
                was = f"with one of SHA-256 {_shown(then)}" if then else "without one"
                found.append(f"{is_here}, and the run was trained {was}")
        for name, here, then in differing(self.texts, noted.texts):
            found.append(f"the {name} data have changed: they are {here}, and were {then}")
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
