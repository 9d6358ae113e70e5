"""What the checker says of a pair, and whether that is so."""

import re
from dataclasses import dataclass

from battery.says import CANNOT_BE_CHECKED, SAYS, SILENT
from minitransformer.gradcheck import CheckError


@dataclass(frozen=True)
class Verdict:
    """What was said of one pair.

    Attributes:
        word: "right", "wrong", "cannot be told", or "could not be checked".
        causes: for each gradient that is called wrong the cause, as printed; for a pair that could
            not be checked, under "", why not.
    """

    word: str
    causes: dict

    def cause(self, tag):
        """ "named", "wrongly named", or "silent", for a slip of that kind.

        A pair is named where one of its gradients is, and wrongly named where one of them is:
        what a slip does to the others may have no name.
        """
        each = {_judged(cause, tag) for cause in self.causes.values()}
        return next((c for c in ("wrongly named", "named") if c in each), "silent")


def verdict(pair, seed=0):
    """The verdict on ``pair`` with the inputs and the upstream gradient of that seed."""
    try:
        report = pair.check(seed)
    except CheckError as error:
        return Verdict("could not be checked", {"": str(error)})
    told = {tensor.name: _word(tensor) for tensor in report.tensors}
    causes = {t.name: t.diagnosis for t in report.tensors if told[t.name] == "wrong"}
    words = ("wrong", "cannot be told", "right")
    return Verdict(next(word for word in words if word in told.values()), causes)


def _word(tensor):
    if "cannot be told" in str(tensor):
        return "cannot be told"
    return "right" if tensor.right else "wrong"


def gradients(pair):
    """The names, as reports have them, of the gradients that are wrong in ``pair``."""
    return set(pair.wrong.split())


def fault(pair, verdict):
    """How a wrong pair is not rejected as it should be; empty where it is."""
    if verdict.word == "could not be checked" and pair.tag in CANNOT_BE_CHECKED:
        return ""
    if verdict.word != "wrong":
        return f"{verdict.word} {verdict.causes or ''}".strip()
    if set(verdict.causes) != gradients(pair):
        return f"wrong are {sorted(gradients(pair))}, rejected {sorted(verdict.causes)}"
    return ""


def _judged(cause, tag):
    if any(re.search(pattern, cause) for pattern in SAYS[tag]):
        return "named"
    return "silent" if re.search(SILENT, cause) else "wrongly named"
