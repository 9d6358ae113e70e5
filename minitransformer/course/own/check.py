"""Which functions of a learner's file are right, and what to do next."""

import contextlib
import io
import shlex

from minitransformer.course.exercises import ExerciseReport
from minitransformer.course.exercises.parts import RIGHT, TO_DO, WRONG, Verdict, judge, parts_of
from minitransformer.course.own.package import PICTURES, SECOND
from minitransformer.gradcheck.learner import did_you_mean

SINCE, OF_PICTURES = "of what came since 2017", "for pictures"


def nobody(text):
    """Is told, where there is nobody to be told."""


def check_own(file, say=nobody):
    """Check all that is written in an OwnFile; what turns out to be unfinished is left out of it.

    A function is tried with those of the learner's that it calls. Where that fails and another is
    wrong too, it is tried once more with the package's in the places of the others: a mistake is
    named where it is, and nowhere else.

    Args:
        say: is told how much a function prints, in a line of text.

    Returns:
        ExerciseReport
    """
    for part in [p for p in file.written if _may_be_unfinished(p, file)]:
        with file.without([other for other in file.written if other is not part]):
            if _judged(part, file.functions).status == TO_DO:
                file.leave_out(part)
    verdicts = {
        part: _judged(part, file.functions, say)
        if part in file.written
        else _judged_so_far(part, file, say)
        for part in file.parts
    }
    wrong = [part for part in file.written if verdicts[part].status == WRONG]
    for part in wrong if len(wrong) > 1 else ():
        with file.without([other for other in wrong if other is not part]):
            verdicts[part] = _judged(part, file.functions)
    file.wrong = [part.functions[0] for part in wrong if verdicts[part].status == WRONG]
    return ExerciseReport(list(verdicts.values()))


def check_part(file, part):
    """The Verdict on one part of an OwnFile, whatever is wrong with its others."""
    if part not in file.written:
        return _judged_so_far(part, file)
    verdict = _judged(part, file.functions)
    if verdict.status == RIGHT:
        return verdict
    with file.without([other for other in file.written if other is not part]):
        return _judged(part, file.functions)


def following(report, path):
    """What to do next about the file at ``path``, a line of text.

    Two, where the first part is right, a whole Transformer, and the second is not.
    """
    undone = [
        (verdict.part, f"{what} {verdict.part.functions[0]}, see lesson {verdict.part.lesson}")
        for status, what in ((WRONG, "mend"), (TO_DO, "write"))
        for verdict in report.verdicts
        if verdict.status == status
    ]
    train = f"minitransformer train toy --own {shlex.quote(str(path))}"
    first = [v for v in report.verdicts if v.part.functions[0] not in SECOND]
    if not undone:
        return f"next: {train}"
    part, words = undone[0]
    if any(verdict.status != RIGHT for verdict in first):
        return f"next: {words}"
    of = OF_PICTURES if part.functions[0] in PICTURES else SINCE
    return f"your Transformer is complete: {train}\nnext, {of}: {words}"


def _judged(part, functions, say=nobody):
    """The Verdict on a part, whose functions may print."""
    name, printed = part.functions[0], io.StringIO()
    with contextlib.redirect_stdout(printed):
        verdict = judge(part, functions)
    if lines := printed.getvalue().splitlines():
        say(f"{name} printed while it was checked: {lines[0]}, and so on: {len(lines):,} in all")
    return verdict


def _judged_so_far(part, file, say=nobody):
    """The Verdict on a part of which not all is there, or no more than stubs."""
    missing = [name for name in part.functions if name not in file.there]
    if len(missing) == len(part.functions):
        return Verdict(part, TO_DO, _misspelt(missing, file).removeprefix("; "))
    functions = {name: file.there.get(name, not_there) for name in part.functions}
    verdict = _judged(part, functions, say)
    if verdict.status == WRONG:
        return verdict
    words = f"no mistake found so far; still to do: {', '.join(missing)}"
    return Verdict(part, TO_DO, words + _misspelt(missing, file))


def _misspelt(missing, file):
    """What may be meant by what is missing: no helper, whose name begins with an underscore."""
    names = {name for part in parts_of("own") for name in part.functions}
    functions = (name for name, thing in file.functions.items() if callable(thing))
    others = [n for n in functions if n not in names and not n.startswith("_")]
    return "".join(did_you_mean(name, others) for name in missing)


def _may_be_unfinished(part, file):
    """Whether a function of the part, which is there, has a NotImplementedError in it."""
    codes = (getattr(file.there[name], "__code__", None) for name in part.functions)
    return any(code and "NotImplementedError" in code.co_names for code in codes)


def not_there(*inputs, **options):
    """Stands where a function is still to be written."""
    raise NotImplementedError
