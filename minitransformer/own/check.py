"""Which functions of a learner's file are right, and what to do next."""

from minitransformer.exercises import ExerciseReport
from minitransformer.exercises.parts import TO_DO, WRONG, Verdict, judge, parts_of


def check_own(file):
    """Check all that is written in an OwnFile; what turns out to be unfinished is left out of it.

    A function is tried with those of the learner's that it calls. Where that fails and another is
    wrong too, it is tried once more with the package's in the places of the others: a mistake is
    named where it is, and nowhere else.

    Returns:
        ExerciseReport
    """
    verdicts = {part: Verdict(part, TO_DO) for part in parts_of("own")}
    for part in list(file.written):
        verdicts[part] = judge(part, file.functions)
        if verdicts[part].status == TO_DO:  # it ends in a NotImplementedError all the same
            file.leave_out(part)
    wrong = [part for part, verdict in verdicts.items() if verdict.status == WRONG]
    for part in wrong:
        with file.without([other for other in wrong if other is not part]):
            verdicts[part] = judge(part, file.functions)
    report = ExerciseReport(list(verdicts.values()))
    file.wrong = [v.part.functions[0] for v in report.verdicts if v.status == WRONG]
    return report


def following(report, path):
    """What to do next about the file at ``path``, a line of text."""
    for status, what in ((WRONG, "mend"), (TO_DO, "write")):
        for verdict in report.verdicts:
            if verdict.status == status:
                part = verdict.part
                return f"next: {what} {part.functions[0]}; lesson {part.lesson} derives it"
    return f"next: minitransformer train toy --own {path}"
