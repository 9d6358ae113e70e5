"""``minitransformer gradcheck``: is every gradient right?"""

import argparse
import dataclasses
import json
import math
import sys
from collections import Counter

from minitransformer.cases import CASES
from minitransformer.commands.apart import OutOfTimeError, run_apart
from minitransformer.commands.arguments import flags, positive, whole
from minitransformer.core.errors import ExplainedError
from minitransformer.core.twins import accelerated
from minitransformer.gradcheck import CheckError, report
from minitransformer.gradcheck.check import LONGEST, WAYS_OUT
from minitransformer.gradcheck.learner import check_file, did_you_mean

RIGHT, WRONG, NOT_CHECKED = 0, 1, 2  # exit statuses
STATUS = {report.RIGHT: RIGHT, report.WRONG: WRONG, report.UNTOLD: NOT_CHECKED}
KNOWN = {report.RIGHT: True, report.WRONG: False, report.UNTOLD: None}  # whether it is right


def add(parser):
    parser.description = "Compare backward passes with central differences, in float64."
    parser.epilog = (
        "Exit status: 0 when every gradient is right, 1 when one is wrong, 2 when it could not be "
        "checked."
    )
    parser.add_argument(
        "what",
        nargs="?",
        default="all",
        help="'all'; a layer: " + ", ".join(_layers()) + "; or a pair of your own, "
        "my_file.py:my_norm, with my_norm(*inputs) -> (y, cache), my_norm_backward(dy, cache) -> "
        "gradients and my_norm_inputs(rng) -> inputs (default: all)",
    )
    parser.add_argument(
        "--seed", type=whole, default=0, help="of inputs and upstream gradients (default: 0)"
    )
    parser.add_argument(
        "--directions",
        type=positive,
        metavar="K",
        help="for large inputs of your own: compare slopes along K random directions, not entries",
    )
    parser.add_argument(
        "--timeout",
        type=positive,
        metavar="SECONDS",
        help=f"longest time that a check of a pair of your own may take (default: {LONGEST})",
    )
    parser.add_argument(
        "--accelerate",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="whether to check the faster twins of the layers in their place (default: no)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.set_defaults(run=run, usage_error=parser.error)


def _layers():
    return list(dict.fromkeys(case.name.partition(",")[0] for case in CASES))


def run(options):
    """Check what ``options.what`` names; returns the exit status."""
    given = [name for name in ("directions", "timeout") if getattr(options, name) is not None]
    if given and options.what in ("all", *_layers()):
        options.usage_error(f"{flags(given)}: that is for a pair of your own")
    try:
        checks = _checks(
            options.what,
            accelerate=options.accelerate,
            directions=options.directions,
            timeout=options.timeout or LONGEST,
        )
        with accelerated(options.accelerate):
            reports, failed = _made(checks, options.seed)
        return (_print_json if options.json else _print_table)(reports, failed)
    except ExplainedError as error:
        if options.json:
            print(json.dumps({"right": None, "error": str(error)}))
        else:
            print(f"minitransformer gradcheck: {error}", file=sys.stderr)
        return NOT_CHECKED


def _made(checks, seed):
    """(name, Report) of each check, and (name, CheckError) of those that could not be made.

    Raises:
        CheckError: there is one check, and it could not be made.
    """
    reports, failed = [], []
    for name, check in checks:
        try:
            reports.append((name, check(seed)))
        except CheckError as error:
            if len(checks) == 1:
                raise
            failed.append((name, error))
    return reports, failed


def _checks(what, **options):
    """What to check, as (name, function from a seed to a Report); options for a learner's pair."""
    if ":" in what:
        return [(what, lambda seed: _check_file_apart(what, seed, **options))]
    checks = [
        (case.name, case.check) for case in CASES if what in ("all", case.name.partition(",")[0])
    ]
    if what.endswith(".py"):
        raise CheckError(f"say which function of the file: {what}:my_function")
    if not checks:
        others = f"; choose one of {', '.join(_layers())}, or my_file.py:my_function for your own"
        raise CheckError(f"there is no layer {what!r}{did_you_mean(what, _layers()) or others}")
    return checks


def _check_file_apart(place, seed, timeout, **options):
    """As :func:`check_file`, in a process of its own, which the file may crash or never leave."""
    options = dict(place=place, seed=seed, timeout=timeout, **options)
    try:
        return report.Report.from_dict(run_apart(check_file_as_dict, timeout, **options))
    except OutOfTimeError as error:
        raise CheckError(
            f"this takes more than {timeout} s{error}: is there a loop that never ends? "
            f"Otherwise {WAYS_OUT}"
        ) from error


def check_file_as_dict(accelerate, **options):
    """What :func:`check_file` finds, as a dict."""
    with accelerated(accelerate):
        return dataclasses.asdict(check_file(**options))


def _print_table(named_reports, failed):
    print(f"{'layer':<52}{'largest error':>14}{'tensors':>9}{'seconds':>9}")
    for name, checked in named_reports:
        mark = "" if checked.right else f"  {_shown(checked.verdict)}"
        row = f"{checked.max_error:>14.1e}{len(checked.tensors):>9}{checked.seconds:>9.2f}{mark}"
        print(f"{name:<52}{row}")
        if not checked.right or ":" in name:
            print(checked)
    counts = Counter(checked.verdict for _, checked in named_reports)
    told = f"{counts[report.RIGHT]} right, {counts[report.WRONG]} wrong"
    if counts[report.UNTOLD]:
        told += f", {counts[report.UNTOLD]} that cannot be told"
    print(f"{told}, in {sum(checked.seconds for _, checked in named_reports):.1f} s")
    for name, error in failed:
        print(f"minitransformer gradcheck: {name}: {error}", file=sys.stderr)
    return STATUS[_verdict(named_reports, failed)]


def _shown(verdict):
    return verdict.upper() if verdict == report.WRONG else verdict


def _verdict(named_reports, failed):
    verdicts = {checked.verdict for _, checked in named_reports}
    verdicts |= {report.UNTOLD for _ in failed}
    return next(v for v in (report.WRONG, report.UNTOLD, report.RIGHT) if v in verdicts)


def _print_json(named_reports, failed):
    verdict = _verdict(named_reports, failed)
    rows = [
        {
            "name": name,
            "right": KNOWN[checked.verdict],
            "verdict": checked.verdict,
            "max_relative_error": _number(checked.max_error),
            "seconds": checked.seconds,
            "warnings": checked.warnings,
            "unchecked": checked.unchecked,
            "tensors": [
                {
                    "name": tensor.name,
                    "right": KNOWN[tensor.verdict],
                    "verdict": tensor.verdict,
                    "relative_error": _number(tensor.error),
                    "worst_index": tensor.index,
                    "slopes": tensor.slopes,
                    "analytic": _number(tensor.analytic),
                    "numeric": _number(tensor.numeric),
                    "diagnosis": tensor.diagnosis,
                    "zero_everywhere": tensor.vacuous,
                }
                for tensor in checked.tensors
            ],
        }
        for name, checked in named_reports
    ]
    rows += [{"name": name, "right": None, "error": str(error)} for name, error in failed]
    print(json.dumps({"right": KNOWN[verdict], "checks": rows}, indent=1, allow_nan=False))
    return STATUS[verdict]


def _number(value):
    """``value``, or None where JSON has no number for it."""
    return value if value is not None and math.isfinite(value) else None
