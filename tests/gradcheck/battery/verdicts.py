"""What the checker says of a pair, and whether that is so."""

import re
from dataclasses import dataclass

from battery.says import FORMULAS, NEVER, PLACES, SAYS, SILENT
from battery.table import Wrong
from minitransformer.gradcheck import CheckError


@dataclass(frozen=True)
class Verdict:
    """What was said of one pair.

    Attributes:
        word: "right", "wrong", "cannot be told", or "could not be checked".
        causes: (name, cause) of each gradient that is called wrong; of a pair that could not be
            checked ("", why not).
    """

    word: str
    causes: tuple = ()

    def __str__(self):
        return "; ".join(f"{name}: {cause}".removeprefix(": ") for name, cause in self.causes)

    def judged(self, tag):
        """Whether a slip of that kind is "named", "wrongly named", or met with "silence".

        It is named where one of its gradients is, and wrongly named where one of them is: what a
        slip does to the others may have no name.
        """
        each = {_judged(cause, tag) for _, cause in self.causes}
        return next((word for word in ("wrongly named", "named") if word in each), "silence")


def verdict(pair, seed=0):
    """The verdict on ``pair``, its inputs and the upstream gradient drawn from that seed."""
    try:
        report = pair.check(seed)
    except CheckError as error:
        return Verdict("could not be checked", (("", str(error)),))
    words = [_word(tensor) for tensor in report.tensors]
    wrong = [t for t, word in zip(report.tensors, words, strict=True) if word == "wrong"]
    worst = next(word for word in ("wrong", "cannot be told", "right") if word in words)
    return Verdict(worst, tuple((tensor.name, tensor.diagnosis) for tensor in wrong))


def fault(pair, found):
    """In what a verdict falls short of the truth about a pair; empty where it does not."""
    if not isinstance(pair, Wrong):
        return "" if found.word == "right" else f"{found.word}: {found}"
    if found.word != "wrong":
        return f"{found.word}: {found}".removesuffix(": ")
    wrong, named = pair.wrong(), {name for name, _ in found.causes}
    return "" if named == wrong else f"wrong are {wrong}, and it says of {found}"


def _word(tensor):
    if "cannot be told" in str(tensor):
        return "cannot be told"
    return "right" if tensor.right else "wrong"


def _judged(cause, tag):
    if re.search(NEVER, cause):
        return "wrongly named"
    if any(re.search(pattern, cause) for pattern in (*SAYS[tag], *FORMULAS)):
        return "named"
    said = any(re.search(fact, cause) for fact in (*SILENT, *PLACES))
    return "silence" if said else "wrongly named"
