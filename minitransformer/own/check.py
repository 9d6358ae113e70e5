"""Which functions of a learner's file are right, and what to do next."""

from minitransformer.exercises import ExerciseReport
from minitransformer.exercises.parts import RIGHT, TO_DO, WRONG, Verdict, judge, parts_of


def check_own(file):
    """Check all that is written in an OwnFile; what turns out to be unfinished is left out of it.

    A function is judged as it is, with those of the learner's that it calls. Where that fails and
    another is wrong too, it is judged once more with the package's in the place of the others, so
    that a mistake is named where it is.

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
        others = [other for other in wrong if other is not part]
        if others:
            with file.without(others):
                alone = judge(part, file.functions)
            if alone.status == RIGHT:
                names = ", ".join(other.functions[0] for other in others)
                words = f"right by itself; it calls what is wrong, of {names}: mend that first"
                verdicts[part] = Verdict(part, WRONG, words)
    return ExerciseReport(list(verdicts.values()))


def whose(report):
    """How many functions are the learner's, and what to do next: a few lines of text."""
    right = [v.part for v in report.verdicts if v.status == RIGHT]
    lines = [f"{len(right)} of {len(report.verdicts)} functions of the Transformer are yours"]
    following = next((v for v in report.verdicts if v.status == WRONG), None)
    following = following or next((v for v in report.verdicts if v.status == TO_DO), None)
    if following:
        what = "mend" if following.status == WRONG else "write"
        part = following.part
        lines.append(
            f"next: {what} {part.functions[0]}, derived in lesson {part.lesson} "
            f"({part.minutes} min)"
        )
    else:
        lines.append("next: minitransformer train toy --own FILE, as lesson 17 shows")
    return "\n".join(lines)
