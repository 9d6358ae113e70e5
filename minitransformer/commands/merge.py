"""``minitransformer merge``: a run whose weights have what its adapters have learned in them."""

import shlex
from pathlib import Path

from minitransformer.commands.arguments import add_run_folder
from minitransformer.commands.texts import note_unfinished, require_task
from minitransformer.core.errors import require
from minitransformer.core.terminal import note
from minitransformer.inference.generator import TextGenerator
from minitransformer.inference.trained_on_text import OF_TEXT
from minitransformer.runs.parameters import MERGED
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.task import run_at
from minitransformer.training.made import make_run


def add(parser):
    parser.description = (
        "Make a run folder of a run that was trained with --lora: its adapters are added to the "
        "weights that they correct. generate, chat, evaluate and export do so by themselves."
    )
    add_run_folder(parser)
    parser.add_argument("folder", type=Path, help="the run folder to make")
    parser.set_defaults(run=run, shared=False)


def run(options):
    """Write the run folder; returns the exit status."""
    require_task(options.run_folder, TextGenerator)
    config, _ = run_at(options.run_folder).load_config()
    require(config.adapted, f"{options.run_folder} has no adapters; train with --lora makes some")
    RunFolder(options.folder, OF_TEXT).require_free()
    generator = TextGenerator.load(options.run_folder, "cpu")
    note_unfinished(options.run_folder, generator.origin)
    make_run(options.folder, generator.model, generator.vocabulary, MERGED)
    note(f"merged; try it: minitransformer generate {shlex.quote(str(options.folder))}")
    return 0
