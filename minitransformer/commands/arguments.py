"""What several commands take: numbers, files, a device, a search, a learner's functions."""

import argparse
import math
from contextlib import contextmanager, suppress
from pathlib import Path

from minitransformer.core.terminal import note
from minitransformer.runs.run_folder import RunFolder

PICTURES = (".png", ".pdf", ".svg")


def add_run_folder(parser, **options):
    parser.add_argument("run_folder", help="folder of a run, as train makes it", **options)


def add_device(parser):
    parser.add_argument(
        "--device",
        default="auto",
        help="auto, cpu, cuda or cuda:N; auto is a GPU if one is usable (default: auto)",
    )


SEARCH = {"beam_size": 4, "alpha": 0.6}  # where nothing is said


def add_search(parser):
    parser.add_argument(
        "--beam-size",
        type=positive,
        metavar="K",
        help=f"hypotheses extended together; 1 is greedy search (default: {SEARCH['beam_size']})",
    )
    parser.add_argument(
        "--alpha",
        type=_exponent,
        help=f"exponent of the length penalty; 0 is none (default: {SEARCH['alpha']})",
    )


def search_of(options):
    """``beam_size`` and ``alpha``, by name: those that are given, and else the usual ones."""
    given = {name: getattr(options, name) for name in SEARCH}
    return SEARCH | {name: value for name, value in given.items() if value is not None}


def search_in_words(beam_size, alpha):
    beam = "greedy" if beam_size == 1 else f"beam {beam_size}"
    return f"{beam}, alpha {alpha}"


def add_sampling(parser, temperature):
    """How the next token is drawn, with this temperature where nothing is said."""
    parser.add_argument(
        "--temperature",
        type=float,
        default=temperature,
        metavar="X",
        help="below 1 the probable gains, above 1 the improbable; 0 takes the most probable token "
        f"(default: {temperature:g})",
    )
    parser.add_argument(
        "--top-k", type=positive, default=0, metavar="K", help="draw one of the K most probable"
    )
    parser.add_argument(
        "--top-p",
        type=float,
        default=1.0,
        metavar="X",
        help="draw one of the fewest that have the probability X together (default: 1)",
    )
    parser.add_argument("--seed", type=whole, default=0, metavar="N", help="(default: 0)")


def sampling(options):
    """What :func:`add_sampling` asked for, as a generator takes it, but for the seed."""
    return dict(temperature=options.temperature, top_k=options.top_k, top_p=options.top_p)


def add_accelerate(parser):
    parser.add_argument(
        "--accelerate",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether to use the faster twins of the layers (default: %(default)s)",
    )


def add_own(parser):
    parser.add_argument(
        "--own",
        type=Path,
        metavar="FILE",
        help="run this file, and let the functions written in it stand in for the package's: your "
        "own Transformer, see lesson 18",
    )


def add_anyway(parser, what):
    """With it functions that are wrong do ``what`` they do not do otherwise."""
    parser.add_argument(
        "--anyway",
        action="store_true",
        help=f"with --own: {what} although a function is wrong, to see what comes of it",
    )


@contextmanager
def own_functions(options):
    """Inside, the functions of the file that ``own`` of the options names stand in, if it does."""
    if options.own:
        from minitransformer.course.own import own  # nothing else needs these
        from minitransformer.course.own.layers import parts_for
        from minitransformer.course.own.training import checked

        config, _ = RunFolder(options.run_folder).load_config()
        parts = parts_for(config.without_adapters())  # which are merged when they are used
        if hasattr(options, "anyway"):
            file = checked(options.own, options.anyway, note, parts)
            with file.standing_in():
                yield
            names = ", ".join(sorted(file.used))
            note(f"of what spoke, yours: {names or 'nothing'}; {_packages(file)}")
            return
        with own(options.own, parts) as file:
            note(
                f"{len(file.written)} of {len(parts)} functions are those of {options.own}, not "
                "checked here"
            )
            yield
        return
    if getattr(options, "anyway", False):
        options.usage_error("--anyway goes with --own")
    run_folder = RunFolder(options.run_folder)
    note_own(
        run_folder,
        f"here the package's run, and with --own FILE those of a file, such as {run_folder.own}",
    )
    yield


def _packages(file):
    """What of the package's functions ran where an OwnFile's could have stood, in words."""
    return f"the package's: {', '.join(sorted(file.others)) or 'none that yours could replace'}"


def note_own(run_folder, what):
    """Say of a run that was trained on other functions than the package's what runs here."""
    if run_folder.is_trained_on_own():
        note(f"this run was trained on functions of a learner's; {what}")


def flags(names):
    """Options by their names, as they are typed."""
    return ", ".join("--" + name.replace("_", "-") for name in names)


def whole(text, least=0):
    """A whole number, ``least`` or more."""
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number, {least} or more")
    return int(text)


def positive(text):
    """A whole number, 1 or more."""
    return whole(text, 1)


def _exponent(text):
    """A number, 0 or more."""
    with suppress(ValueError):
        if 0 <= (number := float(text)) < math.inf:
            return number
    raise argparse.ArgumentTypeError(f"{text!r} is no number, 0 or more")


def new_file(text):
    """A path that a file can be written to, known before the work for it begins."""
    path = Path(text)
    if not path.parent.is_dir():
        problem = f"there is no folder {path.parent}"
    elif path.is_dir():
        problem = "it is a folder"
    elif path.exists() and not path.is_file():
        problem = "it is no regular file"  # and would be replaced by one: a device, for all users
    else:
        return path
    raise argparse.ArgumentTypeError(f"{text!r} cannot be written: {problem}")


def picture_file(text):
    """A :func:`new_file` for a picture that is drawn."""
    path = new_file(text)
    if path.suffix not in PICTURES:
        raise argparse.ArgumentTypeError(f"{text!r} must end in {', '.join(PICTURES)}")
    return path


def numbered(path, number):
    """The path for one picture of several: name-3.png for name.png."""
    return path.with_stem(f"{path.stem}-{number}")
