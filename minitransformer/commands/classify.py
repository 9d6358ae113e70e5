"""``minitransformer classify``: what pictures are of."""

import json
import os
import sys
from pathlib import Path

from minitransformer.commands.arguments import (
    add_accelerate,
    add_device,
    add_own,
    add_run_folder,
    numbered,
    own_functions,
    picture_file,
    positive,
)
from minitransformer.commands.texts import opened, require_task
from minitransformer.core.errors import in_words, require
from minitransformer.core.regular_file import errors_named
from minitransformer.core.terminal import exact, note
from minitransformer.core.twins import accelerated
from minitransformer.data.errors import PictureError
from minitransformer.data.images.files import read_picture
from minitransformer.evaluation import plots
from minitransformer.inference.classifier import Classifier
from minitransformer.parallel.processes import all_processes

AT_ONCE = 256  # pictures that are in memory together


def add(parser):
    parser.description = (
        "Say what pictures are of: of each the likeliest classes, a line each, with tabs between "
        "file, class and probability."
    )
    parser.epilog = (
        "Pictures are brought to the size of the model, and to grey or colour as it was trained "
        "on. Of a file that is no picture a message tells what is wrong with it, the others are "
        "answered, and the exit status is 1."
    )
    add_run_folder(parser)
    parser.add_argument(
        "picture", nargs="+", help="a PNG or JPEG file, or a folder of such files, or of folders"
    )
    parser.add_argument(
        "--top",
        type=positive,
        default=5,
        metavar="N",
        help="so many classes (default: %(default)s)",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print a line of JSON for each picture, with the probabilities in full",
    )
    parser.add_argument(
        "--looked-at",
        type=picture_file,
        metavar="FILE",
        help="draw what of the picture the answer came from, as .png, .pdf or .svg; of several "
        "pictures, name.png becomes name-1.png, name-2.png, one for each",
    )
    add_device(parser)
    add_accelerate(parser)
    add_own(parser)
    parser.set_defaults(run=run, usage_error=parser.error, shared=True)


def run(options):
    """Print the classes; returns the exit status."""
    require_task(options.run_folder, Classifier)
    with own_functions(options), accelerated(options.accelerate):
        return _classify(options)


def _classify(options):
    processes = all_processes()
    classifier = opened(options, Classifier)
    shape, refused = classifier.model.config.shape, 0
    given = ", ".join(options.picture)
    options.picture = processes.first(_files, options.picture)
    require(options.picture, f"there is no file in {given}")
    for start in range(0, len(options.picture), AT_ONCE):
        paths = options.picture[start : start + AT_ONCE]
        pictures = processes.first(_read, paths, shape)
        there = [i for i, picture in enumerate(pictures) if picture is not None]
        refused += len(pictures) - len(there)
        answers = classifier.classify([pictures[i] for i in there], options.top) if there else []
        for i, likeliest in zip(there, answers, strict=True):
            for line in _lines(paths[i], likeliest, options.json):
                print(line, file=exact(sys.stdout))
            if options.looked_at and not processes.rank:
                _draw(options, start + i + 1, classifier, pictures[i], likeliest)
        sys.stdout.flush()
    return 1 if refused else 0


def _files(given):
    """The files that are given, and in place of a folder those in it and in folders within it.

    They come in the order of their names. What begins with a dot is passed over, and so is a link
    to a folder, which may lead round in a circle.
    """
    files = []
    for path in given:
        if Path(path).is_dir():
            names = sorted(name for name in os.listdir(path) if not name.startswith("."))
            inside = (os.path.join(path, name) for name in names)
            files += _files(p for p in inside if not (os.path.islink(p) and os.path.isdir(p)))
        else:
            files.append(path)
    return files


def _lines(path, likeliest, as_json):
    """What is printed of a picture."""
    if as_json:
        classes = [{"class": name, "probability": p} for name, p in likeliest]
        return [json.dumps({"file": path, "classes": classes})]
    return [f"{path}\t{name}\t{probability:.3f}" for name, probability in likeliest]


def _read(paths, shape):
    """The pictures as the model takes them; None, with a note, where a file is none."""
    pictures = []
    for path in paths:
        try:
            pictures.append(read_picture(path, shape))
        except (PictureError, OSError) as error:
            note(in_words(error))
            pictures.append(None)
    return pictures


def _draw(options, number, classifier, picture, likeliest):
    path = options.looked_at
    if len(options.picture) > 1:
        path = numbered(path, number)
    name, probability = likeliest[0]
    with errors_named(path):
        weights = classifier.looked_at(picture)
        plots.looked_at(picture, weights, path, title=f"{name}, {probability:.0%}")
    note(f"drawn: {path}")
