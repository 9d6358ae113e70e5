"""``minitransformer explore``: a trained model in one page, to look into with a browser."""

import argparse
import sys
import webbrowser
from pathlib import Path

from minitransformer.commands.arguments import add_run_folder, new_file, note_own
from minitransformer.core.regular_file import written_whole
from minitransformer.data.text.corpus import read_text
from minitransformer.explorer.page import explorer_page, require_explorable
from minitransformer.inference.filler import Filler
from minitransformer.inference.generator import TextGenerator
from minitransformer.inference.translator import Translator
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.splits import load_split
from minitransformer.training.recipe import Recipe

EXAMPLES = 12
TRAINED = {trained.task: trained for trained in (Translator, TextGenerator, Filler)}


def add(parser):
    parser.description = (
        "Write a page in which the model of a run translates, goes on with texts or fills their "
        "gaps, and shows what it computes, forward and backward. It is one file, needs no network, "
        "and may be given away."
    )
    add_run_folder(parser)
    parser.add_argument(
        "--output",
        type=new_file,
        metavar="FILE",
        help="where to write it (default: explorer.html in the run folder)",
    )
    parser.add_argument(
        "--sentences",
        type=Path,
        metavar="FILE",
        help="sentences to begin with, one a line (default: some of the toy corpus if the run was "
        "trained on it, otherwise none)",
    )
    parser.add_argument(
        "--open",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether to open the page in a browser (default: %(default)s)",
    )
    parser.set_defaults(run=run)


def run(options):
    """Write the page, print where, and open it; returns the exit status."""
    run_folder = RunFolder(options.run_folder)
    note_own(run_folder, "the page computes with the package's")
    page = page_of(run_folder, options.sentences)
    path = options.output or run_folder.path / "explorer.html"
    with written_whole(path) as file:
        file.write(page)
    print(path)
    if options.open and not _opened(path.resolve().as_uri()):
        print("no browser was found here; open the page with yours", file=sys.stderr)
    return 0


def _opened(address):
    """Opens an address in a browser; returns whether there is one."""
    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False


def page_of(run_folder, sentences=None, lessons=None):
    """The page of a run, as the bytes of its file.

    Without a file of sentences it begins with the first that a run on the toy corpus was validated
    with. Other text stays where it is: a page is given away, and a run folder from elsewhere may
    name any file of this machine as its text.

    Args:
        run_folder: a RunFolder.
        sentences: path of a file with a sentence a line, or None.
        lessons: as for :func:`~minitransformer.explorer.page.explorer_page`.
    """
    config, _ = run_folder.load_config()
    require_explorable(config)
    trained = TRAINED[config.task].load(run_folder.path, "cpu")
    data = Recipe.of_run(run_folder).data
    examples = []
    if sentences:
        examples = [line for line in read_text(sentences).splitlines() if line.strip()]
    elif data.corpus == "toy":
        pairs = load_split(data, "validation")[:EXAMPLES]
        examples = [_example(config.task, *pair) for pair in pairs]
    languages = None if data.corpus in ("files", "text") else data.languages.split("-")
    if languages and config.task != Translator.task:
        languages = [languages[1]] * 2  # the target side is what it has learned from
    return explorer_page(trained.model, trained.vocabulary, examples, languages, lessons)


def _example(task, source, target):
    """What a model of a task is given of a pair: all, the beginning, or what has a gap."""
    words = target.split()
    middle = len(words) // 2
    if task == TextGenerator.task:
        return " ".join(words[:middle])
    if task == Filler.task:
        return " ".join([*words[:middle], "___", *words[middle + 1 :]])
    return source
