"""``minitransformer explore``: a trained model in one page, to look into with a browser."""

import argparse
import io
import string
import sys
import webbrowser
from pathlib import Path

from minitransformer.commands.arguments import add_run_folder, new_file, note_own
from minitransformer.commands.texts import note_unfinished
from minitransformer.core.regular_file import read_regular, written_whole
from minitransformer.core.terminal import note
from minitransformer.data.text.corpus import read_text
from minitransformer.explorer.page import Origin, Own, explorer_page, require_explorable
from minitransformer.explorer.stored import as_stored, bits_of
from minitransformer.inference.filler import Filler
from minitransformer.inference.generator import TextGenerator
from minitransformer.inference.translator import Translator
from minitransformer.models.registry import new_model
from minitransformer.runs.checkpoint.arrays import load_model_arrays
from minitransformer.runs.checkpoint.file import RunError
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.splits import load_split
from minitransformer.tasks.translation import Translation
from minitransformer.training.progress import Progress
from minitransformer.training.recipe import Recipe

EXAMPLES = 12
LONGEST = 10**6  # bytes of a certificate
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
        "--epochs",
        action="store_true",
        help="put the parameters after each epoch that the run has kept into the page, too, in 8 "
        "bits; minitransformer train --average N keeps the last N at least",
    )
    parser.add_argument(
        "--own",
        type=Path,
        metavar="FILE",
        help="run this file: the page shows the functions written in it, beside those it computes "
        "with, and it is said how many of the sentences they translate otherwise",
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
    if not options.own:
        note_own(
            run_folder,
            "the page computes with the package's; with --own FILE it shows those of a file, such "
            f"as {run_folder.own}",
        )
    page = page_of(run_folder, options.sentences, own=options.own, epochs=options.epochs)
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


def page_of(run_folder, sentences=None, lessons=None, own=None, epochs=False):
    """The page of a run, as the bytes of its file.

    Without a file of sentences it begins with the first that a run on the toy corpus was validated
    with. Other text stays where it is: a page is given away, and a run folder from elsewhere may
    name any file of this machine as its text.

    Args:
        run_folder: a RunFolder.
        sentences: path of a file with a sentence a line, or None.
        lessons: as for :func:`~minitransformer.explorer.page.explorer_page`.
        own: path of a file of a learner's functions, which is run, or None.
        epochs: whether the page has the model after each epoch that the run has kept.

    Raises:
        CheckError: the file cannot be run, or a function in it fails.
        RunError: there are a learner's functions, and the run does not translate.
    """
    config, _ = run_folder.load_config()
    require_explorable(config, len(run_folder.epoch_files()) if epochs else 0)
    if own and config.task != Translator.task:
        raise RunError("--own is for runs that translate; leave it out")
    trained = TRAINED[config.task].load(run_folder.path, "cpu")
    note_unfinished(run_folder.path, trained.origin)
    recipe = Recipe.of_run(run_folder)
    data, translates = recipe.data, config.task == Translator.task
    examples = []
    if sentences:
        examples = [line for line in read_text(sentences).split("\n") if line.strip()]
    elif data.corpus == "toy":
        pairs = load_split(data, "validation")[:EXAMPLES]
        examples = [_example(config.task, *pair) for pair in pairs]
    languages = None if data.corpus in ("files", "text") else data.languages.split("-")
    if languages and not translates:
        languages = [languages[1]] * 2  # the target side is what it has learned from
    trained_here = next(iter(run_folder.log), None)  # and not imported, with a recipe of defaults
    origin = Origin(
        corpus=data.corpus if trained_here else "",
        label_smoothing=recipe.training.label_smoothing if trained_here else 0.0,
        words=_source_words(recipe) if translates and data.corpus == "toy" else None,
        own=_compared(own, run_folder, config, trained, examples) if own else None,
    )
    if bits_of(config) == 8:
        compared = translates and _compared_rounded(trained, examples)
        note("the page has the parameters rounded to 8 bits" + (compared or ""))
    about = languages, lessons, origin, _epochs(run_folder) if epochs else None
    return explorer_page(trained.model, trained.vocabulary, examples, *about)


def _epochs(run_folder):
    """The models after the epochs that a run has kept, by the number of the epoch."""
    config, _ = run_folder.load_config()
    models = {}
    for path in run_folder.epoch_files():
        arrays, state = run_folder.load(path)
        models[state["epoch"]] = new_model(config, seed=None, device="cpu")
        load_model_arrays(models[state["epoch"]], arrays, where=path)
    if not models:
        raise RunError(f"{run_folder.path} has kept the parameters of no epoch; leave out --epochs")
    note(
        f"the slider has the {len(models)} epochs that the run has kept; minitransformer train "
        "--average N keeps the last N at least"
    )
    return models


def _compared_rounded(translator, sentences):
    """In words how many sentences the rounded model of a page translates otherwise."""
    if not sentences:
        return "; its model is compared with the run's if --sentences gives some"
    rounded = Translator(as_stored(translator.model, 8), translator.vocabulary)
    theirs, ours = (t.translate(sentences, beam_size=1) for t in (rounded, translator))
    differ = sum(a != b for a, b in zip(theirs, ours, strict=True))
    return f"; its model translates {differ} of {len(sentences)} sentences otherwise than the run's"


def _example(task, source, target):
    """What a model of a task is given of a pair: all, the beginning, or what has a gap."""
    words = target.split()
    middle = len(words) // 2
    if task == TextGenerator.task:
        return " ".join(words[:middle])
    if task == Filler.task:
        return " ".join([*words[:middle], "___", *words[middle + 1 :]])
    return source


def _source_words(recipe):
    """The words of the source sentences of a training, each once, without marks around them."""
    pairs, _ = Translation.read(recipe, Progress(io.StringIO()))
    words = {word.strip(string.punctuation) for source, _ in pairs for word in source.split()}
    return sorted(words)


def _compared(path, run_folder, config, translator, sentences):
    """The Own of the file at ``path``; says how it translates the sentences, beside the package."""
    from minitransformer.course.own import own  # nothing else needs these
    from minitransformer.course.own.layers import parts_for

    with own(path, parts_for(config.without_adapters())) as file:
        theirs = Translator.load(run_folder.path, "cpu").translate(sentences, beam_size=1)
    packages = translator.translate(sentences, beam_size=1)
    differ = sum(a != b for a, b in zip(theirs, packages, strict=True))
    whose = f"by the {len(file.sources())} functions of {path}"
    told = (
        f"{differ} of {len(sentences)} sentences are translated otherwise {whose} than by the page"
    )
    note(told if sentences else "no translations are compared: give --sentences, a file of some")
    certificate = None
    if run_folder.certificate.exists():
        text = read_regular(run_folder.certificate, LONGEST).decode(errors="replace")
        certificate = text if file.fingerprint in text else None  # which may be another file's
    return Own(path.name, file.sources(), len(sentences), differ, certificate)
