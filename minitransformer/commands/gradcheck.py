"""``minitransformer gradcheck``: is every gradient right?"""

import argparse
import contextlib
import json
import math
import sys

from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.cases import CASES
from minitransformer.gradcheck.learner import check_file
from minitransformer.twins import accelerated

RIGHT, WRONG, NOT_CHECKED = 0, 1, 2  # exit statuses


def add(parser):
    parser.description = "Compare backward passes with central differences, in float64."
    parser.epilog = (
        "Exit status: 0 when every gradient is right, 1 when one is wrong, 2 when it could not be "
        "checked."
    )
    parser.formatter_class = argparse.ArgumentDefaultsHelpFormatter
    parser.add_argument(
        "what",
        nargs="?",
        default="all",
        help="'all'; a layer: " + ", ".join(_layers()) + "; or a pair of your own, "
        "my_file.py:my_norm, with my_norm(*inputs) -> (y, cache), my_norm_backward(dy, cache) -> "
        "gradients and my_norm_inputs(rng) -> inputs",
    )
    parser.add_argument("--seed", type=_seed, default=0, help="of inputs and upstream gradients")
    parser.add_argument(
        "--directions",
        type=int,
        metavar="K",
        help="for large inputs of your own: compare slopes along K random directions, not entries",
    )
    parser.add_argument(
        "--accelerate",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="whether to check the faster twins of the layers in their place",
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.set_defaults(run=run)


def _seed(text):
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number, 0 or more")
    return int(text)


def _layers():
    return list(dict.fromkeys(case.name.partition(",")[0] for case in CASES))


def run(options):
    """Check what ``options.what`` names; returns the exit status."""
    try:
        checks = _checks(options.what, options.directions)
        printed = contextlib.redirect_stdout(sys.stderr)  # whatever a learner's file prints
        with printed, accelerated(options.accelerate):
            reports = [(name, check(options.seed)) for name, check in checks]
        return _print_json(reports) if options.json else _print_table(reports)
    except CheckError as error:
        if options.json:
            print(json.dumps({"right": None, "error": str(error)}))
        else:
            print(f"minitransformer gradcheck: {error}", file=sys.stderr)
        return NOT_CHECKED


def _checks(what, directions):
    """What to check, as (name, function from a seed to a Report)."""
    if ":" in what:
        return [(what, lambda seed: check_file(what, seed, directions))]
    checks = [
        (case.name, case.check) for case in CASES if what in ("all", case.name.partition(",")[0])
    ]
    if what.endswith(".py"):
        raise CheckError(f"say which function of the file: {what}:my_function")
    if not checks:
        raise CheckError(
            f"there is no layer {what!r}; choose one of {', '.join(_layers())}, "
            "or my_file.py:my_function for your own"
        )
    return checks


def _print_table(named_reports):
    print(f"{'layer':<52}{'largest error':>14}{'tensors':>9}{'seconds':>9}")
    for name, report in named_reports:
        mark = "" if report.right else "  WRONG"
        row = f"{report.max_error:>14.1e}{len(report.tensors):>9}{report.seconds:>9.2f}{mark}"
        print(f"{name:<52}{row}")
        if not report.right or ":" in name:
            print(report)
    wrong = sum(not report.right for _, report in named_reports)
    seconds = sum(report.seconds for _, report in named_reports)
    print(f"{len(named_reports) - wrong} right, {wrong} wrong, in {seconds:.1f} s")
    return WRONG if wrong else RIGHT


def _print_json(named_reports):
    right = all(report.right for _, report in named_reports)
    rows = [
        {
            "name": name,
            "right": report.right,
            "max_relative_error": _number(report.max_error),
            "seconds": report.seconds,
            "tensors": [
                {
                    "name": tensor.name,
                    "right": tensor.right,
                    "relative_error": _number(tensor.error),
                    "worst_index": tensor.index,
                    "analytic": _number(tensor.analytic),
                    "numeric": _number(tensor.numeric),
                    "diagnosis": tensor.diagnosis,
                }
                for tensor in report.tensors
            ],
        }
        for name, report in named_reports
    ]
    print(json.dumps({"right": right, "checks": rows}, indent=1, allow_nan=False))
    return RIGHT if right else WRONG


def _number(value):
    """``value``, or None where JSON has no number for it."""
    return value if value is not None and math.isfinite(value) else None
