"""What ``[data]`` of a recipe may say: each task has a dataclass of settings of its own."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from minitransformer.core.errors import InputError, listed, require_one_of
from minitransformer.core.settings import Settings


class RecipeError(InputError):
    """No such recipe, or a field of it does not exist or has a value that makes no sense."""


CHOICE = 2**32 - 1  # beside the seed: which examples a share has


def share_of(examples, share, seed):
    """The places of so much of the examples, in order: all of each share are in a larger one."""
    if share == 1:
        return range(len(examples))
    order = np.random.default_rng((seed, CHOICE)).permutation(len(examples))
    return np.sort(order[: max(1, round(share * len(examples)))]).tolist()


@dataclass(frozen=True)
class Data(Settings):
    """The base of a task's data settings; each field but the corpus has a default.

    Attributes:
        corpus: the data by their name, one of ``corpora``.
        corpora: of each corpus, the fields that it needs and those that it may have, two tuples;
            what none of them has is for all.
        paths: the fields that say where data are, which each machine may have elsewhere.
        former: what recipes of older releases may say, too, and what it has to be.

    Raises:
        ValueError: a field makes no sense.
    """

    corpora: ClassVar[dict]
    paths: ClassVar[tuple] = ()
    former: ClassVar[dict] = {}

    corpus: str

    def require_sense(self):
        """Raise a RecipeError where a field of the corpus is missing."""
        needed, _ = self.corpora[self.corpus]
        for name in needed:
            if not getattr(self, name):
                flag, what = name.replace("_", "-"), "FOLDER" if self.corpus == "folder" else "FILE"
                raise RecipeError(f"corpus={self.corpus!r} needs {name}: --{flag} {what}")

    def require_used(self):
        """Raise a RecipeError where a field is for another corpus, as it may be in an old run."""
        for name, corpora in self._users().items():
            value = getattr(self, name)
            if self.corpus not in corpora and value != getattr(type(self), name):
                raise RecipeError(
                    f"{name}={value!r} is for corpus={listed(corpora)}, and here it is "
                    f"{self.corpus!r}; leave out {name}"
                )

    def of_corpus(self, corpus):
        """These settings for another corpus, but for what that has no use for."""
        unused = {name for name, corpora in self._users().items() if corpus not in corpora}
        return replace(self, corpus=corpus, **{n: getattr(type(self), n) for n in unused})

    def _users(self):
        """The corpora of each field that is not for all of them."""
        users = {}
        for corpus, fields in self.corpora.items():
            for name in sum(fields, ()):
                users.setdefault(name, []).append(corpus)
        return users

    def __post_init__(self):
        super().__post_init__()
        require_one_of(self.corpora, "corpus", self.corpus)
