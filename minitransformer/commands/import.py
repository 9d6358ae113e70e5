"""``minitransformer import``: a run folder made of the weights of others."""

import os
import shlex
from pathlib import Path

from minitransformer.core.errors import InputError
from minitransformer.core.terminal import note
from minitransformer.inference.conversation import has_turns
from minitransformer.inference.trained_on_text import OF_TEXT
from minitransformer.runs.parameters import IMPORTED
from minitransformer.runs.paths import RUNS
from minitransformer.runs.run_folder import RunFolder
from minitransformer.runs.weights import gguf_models, hugging_face, llama2c
from minitransformer.runs.weights.known import KNOWN, known_file
from minitransformer.training.made import make_run


def add(parser):
    parser.description = (
        "Make a run folder of a language model that others have trained. chat talks with it then, "
        "or generate goes on with texts."
    )
    parser.add_argument(
        "source",
        help=f"{', '.join(KNOWN)}, whose weights come with a package; a .gguf, or a .bin of "
        "llama2.c; or a folder with config.json, tokenizer.json and .safetensors of a GPT-2 or a "
        "Llama",
    )
    parser.add_argument(
        "--vocabulary", type=Path, metavar="FILE", help="with a .bin: that of its vocabulary"
    )
    parser.add_argument(
        "--run-folder",
        type=Path,
        metavar="FOLDER",
        help="the run folder to make (default: runs/NAME of the source)",
    )
    parser.set_defaults(run=run, usage_error=parser.error, shared=False)


def run(options):
    """Write the run folder; returns the exit status."""
    source = Path(options.source)
    name = source.stem if source.suffix in (".bin", ".gguf") else Path(os.path.abspath(source)).name
    folder = RunFolder(options.run_folder or RUNS / name, OF_TEXT)
    folder.require_free()
    model, vocabulary = _read(options)
    make_run(folder.path, model, vocabulary, IMPORTED)
    use = f'generate {shlex.quote(str(folder.path))} "Once upon a time" --temperature 0.8'
    if has_turns(vocabulary):
        use = f"chat {shlex.quote(str(folder.path))}"
    note(f"{model.num_parameters():,} parameters; let it speak: minitransformer {use}")
    return 0


def _read(options):
    """(LanguageModel, its vocabulary) of the source."""
    path = Path(options.source)
    if (path.suffix == ".bin") != bool(options.vocabulary):
        options.usage_error("a .bin of llama2.c goes with --vocabulary FILE, and nothing else does")
    if options.vocabulary:
        return llama2c.read(path, options.vocabulary)
    if options.source in KNOWN:
        return gguf_models.read(known_file(options.source))
    if path.suffix == ".gguf":
        return gguf_models.read(path)
    if path.is_dir():
        return hugging_face.read(path)
    raise InputError(
        f"{path} is nothing that is imported; give {', '.join(KNOWN)}, a .gguf, a .bin, or a folder"
    )
