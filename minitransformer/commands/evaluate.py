"""``minitransformer evaluate``: the scores of a trained model, of a translator BLEU and others."""

import json
from itertools import chain
from pathlib import Path

from minitransformer.commands.arguments import (
    add_accelerate,
    add_device,
    add_own,
    add_run_folder,
    add_search,
    flags,
    new_file,
    own_functions,
    picture_file,
    positive,
    search_in_words,
    search_of,
)
from minitransformer.commands.texts import opened
from minitransformer.core.regular_file import errors_named
from minitransformer.core.terminal import note
from minitransformer.core.twins import accelerated
from minitransformer.data.images.folders import read_others
from minitransformer.evaluation import plots
from minitransformer.evaluation.scores import sacrebleu_metrics, score, table
from minitransformer.inference.classifier import Classifier
from minitransformer.inference.generator import TextGenerator
from minitransformer.inference.translator import Translator
from minitransformer.parallel.processes import all_processes
from minitransformer.runs.checkpoint.arrays import load_model_arrays
from minitransformer.tasks.language_modelling import texts_of, unit_of
from minitransformer.tasks.splits import TEST_SPLITS, load_split
from minitransformer.tasks.task import run_at, task_class
from minitransformer.training.recipe import Recipe
from minitransformer.training.session import validated
from minitransformer.version import __version__

OF_TASKS = {  # options that not all tasks have a use for, by task
    Translator.task: ("split", "beam_size", "alpha", "checkpoints", "output", "json"),
    Classifier.task: ("split", "pictures", "ten_crops", "confusion", "json"),
    TextGenerator.task: ("text", "context", "json"),
}
SEEN = 256  # tokens at once, if nothing else is said: what a text costs depends on it


def add(parser):
    parser.description = (
        "Score a trained model. The translations of a split are scored by sacreBLEU; a classifier "
        "by how many pictures of a split it gets right; a language model by its perplexity on a "
        "text. Any other model is validated once more, for which --data-dir, --device, "
        "--accelerate and --own are."
    )
    add_run_folder(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--split",
        help="of the run's corpus (default: "
        + ", ".join(f"{split} of {corpus}" for corpus, split in TEST_SPLITS.items())
        + "; of pictures test, where the corpus has it)",
    )
    what.add_argument(
        "--pictures",
        type=Path,
        metavar="FOLDER",
        help="in place of a split: pictures that a classifier has not seen, in a folder for each "
        "of its classes",
    )
    what.add_argument(
        "--text",
        type=Path,
        metavar="FILE",
        help="in place of a split: a text that a language model has not seen",
    )
    parser.add_argument(
        "--context",
        type=positive,
        metavar="N",
        help=f"with --text: tokens that are seen at once, if the model can (default: {SEEN}, "
        "whatever it was trained with)",
    )
    parser.add_argument("--data-dir", metavar="FOLDER", help="where a copy of the corpus is")
    add_search(parser)
    parser.add_argument(
        "--checkpoints", action="store_true", help="score the epochs that were kept, too"
    )
    parser.add_argument(
        "--output", type=new_file, metavar="FILE", help="write the translations there, one a line"
    )
    parser.add_argument(
        "--json",
        type=new_file,
        metavar="FILE",
        help="write the scores there, with their signatures and how they were made",
    )
    parser.add_argument(
        "--ten-crops",
        action="store_true",
        help="ask a classifier for ten parts of each picture, and take the mean",
    )
    parser.add_argument(
        "--confusion",
        type=picture_file,
        metavar="FILE",
        help="draw which class a classifier takes for which, as .png, .pdf or .svg",
    )
    add_device(parser)
    add_accelerate(parser)
    add_own(parser)
    parser.set_defaults(run=run, usage_error=parser.error, shared=True)


def run(options):
    """Score as ``options`` say; returns the exit status."""
    run_folder = run_at(options.run_folder)
    config, _ = run_folder.load_config()
    _require_used(options, config.task)
    if config.task != Translator.task:
        return _validate(options, run_folder, task_class(config))
    sacrebleu_metrics()
    with own_functions(options):
        return _score(options, run_folder)


def _require_used(options, task):
    own = OF_TASKS.get(task, ())
    others = {name: getattr(options, name) for name in chain(*OF_TASKS.values()) if name not in own}
    unused = [name for name, value in others.items() if value is not None and value is not False]
    if unused:
        again = "" if own else ", and is validated once more"
        options.usage_error(
            f"{options.run_folder} was trained for {task}{again}; leave out {flags(unused)}"
        )


def _validate(options, run_folder, task):
    if options.data_dir and (options.text or options.pictures):
        options.usage_error("--data-dir is of the run's corpus; leave it out")
    recipe, processes = _recipe(options, run_folder), all_processes()
    corpus = recipe.data.corpus
    split = options.split or task.splits.get(corpus, "validation")
    if options.ten_crops and not recipe.data.crop_padding:
        options.usage_error(
            f"--ten-crops cuts pictures as the training of {options.run_folder} did, and that "
            "had no --crop-padding; leave out --ten-crops"
        )
    how = {"ten_crops": True} if options.ten_crops else {}
    if options.pictures:
        split, how["others"] = options.pictures, processes.first(_others, options, run_folder)
    if options.context and not options.text:
        options.usage_error("--context goes with --text")
    if options.text:
        context = min(options.context or SEEN, recipe.model["max_length"])
        recipe = recipe.with_value("context", context)
        unit = unit_of(run_folder.load_kept("vocabulary"))
        how["others"] = processes.first(texts_of, options.text, unit)
        split = f"{options.text}, {context} tokens at once"
    with own_functions(options), accelerated(options.accelerate):
        device = processes.device(options.device)
        scores, task, origin = validated(run_folder, recipe, device, processes, split, **how)
    crops = ", ten crops" if options.ten_crops else ""
    of_choice = ", which chooses the epoch" if split == "validation" else ""
    corpus = None if "others" in how else corpus
    data = f"{corpus}, {split}" if corpus else split
    print(f"{data}{of_choice}: {origin}{crops}\n")
    for name, value in scores.items():
        print(f"{name.replace('_', ' '):<20}{value:8.4f}")
    if details := task.details():
        print("", *details, sep="\n")
    if processes.rank:
        return 0
    if options.confusion:
        with errors_named(options.confusion):
            plots.confusion_matrix(task.counts, task.classes, options.confusion)
        note(f"confusion drawn: {options.confusion}")
    if options.json:
        how = {"ten_crops": options.ten_crops, "device": str(device), "scores": scores}
        _write_json(options, recipe, corpus, split, origin, **how)
    return 0


def _others(options, run_folder):
    pictures, skipped = read_others(options.pictures, run_folder.load_kept("statistics"))
    for line in skipped:
        note(f"skipped: {line}")
    return pictures


def _recipe(options, run_folder):
    recipe = Recipe.of_run(run_folder)
    if options.data_dir:
        recipe = recipe.with_value("data_dir", options.data_dir)
        recipe.data.require_used()
    return recipe


def _score(options, run_folder):
    recipe = _recipe(options, run_folder)
    split = options.split or TEST_SPLITS[recipe.data.corpus]
    pairs = load_split(recipe.data, split)
    sources, references = [source for source, _ in pairs], [target for _, target in pairs]
    # What is printed tells corpus and seed, too.
    run_folder.bind(recipe.identity())
    run_folder.require_bound()
    translator = opened(options, Translator, accelerate=options.accelerate)
    how = search_of(options)

    def scored():
        texts = translator.translate(sources, **how)
        return texts, score(texts, references)

    texts, scores = scored()
    rows = {"chosen": scores}
    if options.checkpoints:
        for path in run_folder.epoch_files():
            load_model_arrays(translator.model, run_folder.load(path)[0])
            rows[path.stem] = scored()[1]

    print(f"{recipe.data.corpus}, {split}: {translator.origin}, {search_in_words(**how)}\n")
    print(table(rows))
    if all_processes().rank:
        return 0
    if options.output:
        with errors_named(options.output):
            options.output.write_text("\n".join([*texts, ""]), encoding="utf-8")
    if options.json:
        _write_json(
            *(options, recipe, recipe.data.corpus, split, translator.origin),
            **how,
            device=str(translator.model.device),
            scores={name: scores.as_dict() for name, scores in rows.items()},
        )
    return 0


def _write_json(options, recipe, corpus, split, origin, **how):
    """Write the scores and how they were made to the file that the options name.

    Args:
        corpus: whose split it is; None for data of no corpus.
    """
    content = {
        "command": options.command,
        "version": __version__,
        "corpus": corpus,
        "split": str(split),
        "seed": recipe.training.seed,
        "parameters": origin,
        **how,
    }
    with errors_named(options.json):
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
