"""``minitransformer export``: the model of a run as others keep theirs."""

import shutil
from pathlib import Path

from minitransformer.commands.arguments import add_run_folder
from minitransformer.commands.texts import note_unfinished, require_task
from minitransformer.core.errors import require
from minitransformer.core.terminal import note
from minitransformer.inference.generator import TextGenerator
from minitransformer.runs.weights import hugging_face


def add(parser):
    parser.description = (
        "Write a language model as the library transformers keeps a GPT-2 or a Llama, whichever "
        "has the same layers: config.json, model.safetensors, and tokenizer.json of a vocabulary "
        "that came from there."
    )
    add_run_folder(parser)
    parser.add_argument("folder", type=Path, help="the folder to make")
    parser.set_defaults(run=run, shared=False)


def run(options):
    """Write the folder; returns the exit status."""
    require_task(options.run_folder, TextGenerator)
    generator = TextGenerator.load(options.run_folder, "cpu")
    note_unfinished(options.run_folder, generator.origin)
    folder = options.folder
    require(not folder.exists(), f"{folder} is there already; choose another folder")
    folder.mkdir(parents=True)
    try:
        hugging_face.write(folder, generator.model, generator.vocabulary)
    except BaseException:
        shutil.rmtree(folder)
        raise
    note(f'written; with transformers: AutoModelForCausalLM.from_pretrained("{folder}")')
    return 0
