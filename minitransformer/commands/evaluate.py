"""``minitransformer evaluate``: the scores of a trained model, of a translator BLEU and others."""

import json

from minitransformer.commands.arguments import (
    SEARCH,
    add_accelerate,
    add_device,
    add_own,
    add_run_folder,
    add_search,
    flags,
    new_file,
    own_functions,
)
from minitransformer.commands.texts import opened
from minitransformer.core.regular_file import errors_named
from minitransformer.core.twins import accelerated
from minitransformer.evaluation.scores import sacrebleu_metrics, score, table
from minitransformer.inference.translator import Translator
from minitransformer.parallel.processes import all_processes
from minitransformer.runs.checkpoint.arrays import load_model_arrays
from minitransformer.tasks.splits import TEST_SPLITS, load_split
from minitransformer.tasks.task import run_at, task_class
from minitransformer.training.recipe import Recipe
from minitransformer.training.session import validated
from minitransformer.version import __version__

OF_TESTS = ("split", "data_dir", "beam_size", "alpha", "checkpoints", "output", "json")


def add(parser):
    parser.description = (
        "Score a trained model. The translations of a split are scored by sacreBLEU; what was not "
        "trained to translate is validated once more, for which --device, --accelerate and --own "
        "are."
    )
    add_run_folder(parser)
    parser.add_argument(
        "--split",
        help="of the run's corpus (default: "
        + ", ".join(f"{split} of {corpus}" for corpus, split in TEST_SPLITS.items())
        + ")",
    )
    parser.add_argument("--data-dir", metavar="FOLDER", help="where a copy of Multi30k is")
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
    add_device(parser)
    add_accelerate(parser)
    add_own(parser)
    not_given = dict.fromkeys(SEARCH)  # so that it is told from what is given
    parser.set_defaults(run=run, usage_error=parser.error, shared=True, **not_given)


def run(options):
    """Score as ``options`` say; returns the exit status."""
    run_folder = run_at(options.run_folder)
    config, _ = run_folder.load_config()
    if not task_class(config).has_tests:
        return _validate(options, run_folder, config)
    sacrebleu_metrics()
    for name, value in SEARCH.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    with own_functions(options):
        return _score(options, run_folder)


def _validate(options, run_folder, config):
    given = {name: getattr(options, name) for name in OF_TESTS}
    unused = [name for name, value in given.items() if value is not None and value is not False]
    if unused:
        options.usage_error(
            f"{options.run_folder} was trained for {config.task}, and is validated once more; "
            f"leave out {flags(unused)}"
        )
    recipe, processes = Recipe.of_run(run_folder), all_processes()
    with own_functions(options), accelerated(options.accelerate):
        device = processes.device(options.device)
        scores, details, origin = validated(run_folder, recipe, device, processes)
    print(f"{recipe.data.corpus}, validation: {origin}\n")
    for name, value in scores.items():
        print(f"{name.replace('_', ' '):<20}{value:8.4f}")
    if details:
        print("", *details, sep="\n")
    return 0


def _score(options, run_folder):
    recipe = Recipe.of_run(run_folder)
    if options.data_dir:
        recipe = recipe.with_value("data_dir", options.data_dir)
    split = options.split or TEST_SPLITS[recipe.data.corpus]
    pairs = load_split(recipe.data, split)
    sources, references = [source for source, _ in pairs], [target for _, target in pairs]
    # What is printed tells corpus and seed, too.
    run_folder.bind(recipe.identity())
    run_folder.require_bound()
    translator = opened(options, Translator, accelerate=options.accelerate)

    def scored():
        texts = translator.translate(sources, beam_size=options.beam_size, alpha=options.alpha)
        return texts, score(texts, references)

    texts, scores = scored()
    rows = {"chosen": scores}
    if options.checkpoints:
        for path in run_folder.epoch_files():
            load_model_arrays(translator.model, run_folder.load(path)[0])
            rows[path.stem] = scored()[1]

    beam = "greedy" if options.beam_size == 1 else f"beam {options.beam_size}"
    print(f"{recipe.data.corpus}, {split}: {translator.origin}, {beam}, alpha {options.alpha}\n")
    print(table(rows))
    if all_processes().rank:
        return 0
    if options.output:
        with errors_named(options.output):
            options.output.write_text("\n".join([*texts, ""]), encoding="utf-8")
    if options.json:
        content = {
            "command": options.command,
            "version": __version__,
            "corpus": recipe.data.corpus,
            "split": split,
            "seed": recipe.training.seed,
            "parameters": translator.origin,
            "beam_size": options.beam_size,
            "alpha": options.alpha,
            "device": str(translator.model.device),
            "scores": {name: scores.as_dict() for name, scores in rows.items()},
        }
        with errors_named(options.json):
            options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0
