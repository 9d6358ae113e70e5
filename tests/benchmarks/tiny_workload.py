"""What a benchmark is done with in a moment: sentences, and a workload for each script."""

from dataclasses import replace
from functools import lru_cache, partial

import _trained
import gguf_file
import numpy as np
from _our_side import OurSide
from _workload import Workload
from tiny_run import recipe_of, resize_toy_corpus
from tiny_tasks import recipe_of_kind
from tiny_translator import train_once, write_recipe

from minitransformer import Transformer, TransformerConfig
from minitransformer.data.images import shapes
from minitransformer.data.text.batches import make_batches
from minitransformer.tasks import classification
from minitransformer.tasks.splits import ParallelData

V = 40


def tiny_workload(count=4, **fields):
    """A Workload of ``count`` batches of random sentences, with padding in each."""
    sizes = dict(d_model=16, num_heads=2, d_ff=32, num_encoder_layers=2, num_decoder_layers=2)
    config = TransformerConfig.preset("tiny", V, max_length=20, **(sizes | fields))
    rng = np.random.default_rng(0)
    pairs = [
        tuple(rng.integers(4, V, rng.integers(3, 12)).tolist() for side in range(2))
        for _ in range(20 * count)
    ]
    batches = make_batches(pairs, 200, rng)[:count]
    weights = {path: p.data for path, p in Transformer(config, seed=3).named_parameters()}
    # LayerNorm gains of 1 and biases of 0 would hide that one is taken for another.
    weights = {path: x + 0.1 * rng.standard_normal(x.shape) for path, x in weights.items()}
    weights = {path: x.astype(np.float32) for path, x in weights.items()}
    return Workload("random sentences", config, weights, batches, padding=0.1)


def of_batches(count, *options):
    """The workload of a script that takes ``make_workload``'s, of so many batches."""

    def prepare(script, folder, patch):
        holder = script if hasattr(script, "make_workload") else script._courses
        patch.setattr(holder, "make_workload", lambda *_, **__: tiny_workload(count))
        return [*options, "--threads", 1, "--json", folder / f"{script.__name__}.json"]

    return prepare


def with_few(*options, measuring=None, **constants):
    """The workload of a script that takes these options, and constants that are smaller.

    Args:
        options: of the command line.
        measuring: what its function ``measure`` takes beside what it is given.
        constants: of the module.
    """

    def prepare(script, folder, patch):
        for name, value in constants.items():
            patch.setattr(script, name, value)
        patch.setattr(script, "measure", partial(script.measure, **(measuring or {})))
        return [*options, "--json", folder / f"{script.__name__}.json"]

    return prepare


class InThisProcess:
    """A side of the courses that needs no process of its own; ``wrong`` settings are PyTorch's."""

    def __init__(self, side, folder, settings, **wrong):
        from _torch_side import TorchSide

        kind, changes = (TorchSide, wrong) if side == "torch" else (OurSide, {})
        self.side = kind(Workload.load(folder), replace(settings, **changes))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def call(self, method, **arguments):
        return getattr(self.side, method)(**arguments)


def of_steps_in_this_process(script, folder, patch):
    patch.setattr(script, "SideProcess", InThisProcess)
    plot = "--plot", folder / "loss_curve.png"
    options = "--steps", 40, "--peak-learning-rate", 0.01, *plot
    return of_batches(8, *options)(script, folder, patch)


def of_lines_run_before(script, folder, patch):
    """What coverage notes of lines that are new to it is memory, too."""
    options = "--window", 4, "--width", 8, "--heads", 1, "--rounds", 1
    options = with_few(*options, LENGTHS=(256, 512, 1024))(script, folder, patch)
    assert script.main([str(option) for option in options]) == 0
    return options


def of_short_text(script, folder, patch):
    text = script.standard_library_text(20_000)
    patch.setattr(script, "standard_library_text", lambda: text)
    return with_few("--steps", 20, BLOCK=4)(script, folder, patch)


def of_a_run(script, folder, patch):
    """Translating with a run that knows its sentences by heart."""

    class Base:
        getbasetemp = staticmethod(lambda: folder.parent)

    options = "--rounds", 1, "--threads", 1, "--beam-size", 2, "--tuned-malloc"
    return with_few("--run-folder", train_once(Base), *options)(script, folder, patch)


def let_files_take_data_dir(patch):
    """A corpus of files takes ``--data-dir``, as that of the real runs does, and needs it not."""
    needed, _ = ParallelData.corpora["files"]
    patch.setitem(ParallelData.corpora, "files", (needed, ("data_dir",)))


def of_two_rungs(script, folder, patch):
    """A recurrent model and a Transformer, trained for two epochs."""
    let_files_take_data_dir(patch)
    recipe, other = write_recipe(folder), folder / "recurrent.toml"
    text = recipe.read_text(encoding="utf-8").replace("epochs = 14", "epochs = 2")
    recipe.write_text(text, encoding="utf-8")
    lines = text.replace("num_heads = 2", 'kind = "recurrent"\nd_hidden = 16').splitlines()
    others = "d_ff", "num_encoder", "num_decoder", "norm"  # which it does not have
    other.write_text("\n".join(x for x in lines if not x.startswith(others)), encoding="utf-8")
    patch.setattr(script, "RECIPES", {str(other): "recurrent", str(recipe): "Transformer"})
    patch.setattr(script, "SPLIT", "validation")
    patch.setattr(script, "STEPS", 1)
    folders = "--data-dir", folder, "--runs", folder / "runs", "--results", folder
    return [*folders, "--rounds", 1, "--decodings", 1]


def of_few_labels(script, folder, patch):
    """Tiny models, pre-trained for an epoch, that tag a tiny corpus with two seeds."""
    sizes = ["--d-model", "8", "--num-heads", "2", "--d-ff", "16", "--num-layers", "1"]
    sizes += ["--vocabulary-size", "150"]
    train = _trained.minitransformer

    def of_few_sizes(command):
        own = sizes if "--from" not in command and "--resume" not in command else []
        own = [*own, "--epochs", "1"] if "bert-toy" in command else own
        return train([*command, *own])

    script._corpus.cache_clear()
    resize_toy_corpus(patch, {"train": 120, "validation": 12, "test": 12})
    patch.setattr(_trained, "minitransformer", of_few_sizes)
    patch.setattr(script, "EPOCHS", {0.1: 2, 1.0: 1})
    options = ["--runs", folder / "runs", "--shares", 0.1, 1, "--seeds", 1, 2]
    return _trained_before(script, folder, patch, options)


def few_pictures(patch, user=classification):
    """Let a module have but a few shapes."""
    patch.setattr(shapes, "SIZES", {"train": 60, "validation": 20, "test": 20})
    patch.setattr(user, "shapes_corpus", lru_cache(maxsize=1)(shapes.shapes_corpus.__wrapped__))


def of_few_pictures(script, folder, patch):
    """A tiny network for shapes, trained for two epochs with two seeds, and not once more."""
    few_pictures(patch)
    recipe = recipe_of("small-network", epochs=2, num_features=4, batch_tokens=20, crop_padding=1)
    (folder / "tiny.toml").write_text(recipe.as_toml(), encoding="utf-8")
    options = ["--runs", folder / "runs", "--recipes", folder / "tiny.toml", "--seeds", 1, 2]
    return _trained_before(script, folder, patch, options)


def of_few_claims(script, folder, patch):
    """Two tiny networks for shapes, one of them with other shortcuts, and not trained once more."""
    few_pictures(patch)
    small = dict(corpus="shapes", width_factor=0.25, depth=8, batch_tokens=20, epochs=2)
    rows = {"plain": dict(shortcut="none"), "residual": dict(shortcut="A")}
    claim = replace(script.CLAIMS["depth"](), common=small, rows=rows)
    patch.setitem(script.CLAIMS, "depth", lambda: claim)
    options = ["depth", "--runs", folder / "runs", "--seeds", 1, 2, "--plot", folder / "plot.png"]
    return _trained_before(script, folder, patch, options)


def of_few_changes(script, folder, patch):
    """Tiny language models of a tiny corpus, of two kinds of positions, and not trained twice."""
    resize_toy_corpus(patch, {"train": 60, "validation": 12, "test": 12})
    rows = {script.BASE: {}, "ALiBi": {"positions": "alibi"}, "as it is": {"bias": "none"}}
    patch.setattr(script, "ROWS", rows)
    sizes = dict(d_model=8, num_heads=2, d_ff=16, num_layers=1, max_length=16, epochs=1)
    patch.setattr(script, "COMMON", dict(unit="characters", **sizes))
    options = ["--runs", folder / "runs", "--rows", *rows, "--seeds", 1, 2, "--blocks", 2]
    options += ["--block", 1, "--lengths", 256, 512, 1024]
    return _trained_before(script, folder, patch, options)


def of_few_variations(script, folder, patch):
    """Tiny translators of a tiny corpus, two of which are searched, and not trained once more."""
    resize_toy_corpus(patch, {"train": 60, "validation": 12, "test": 12})
    sizes = dict(d_model=8, num_heads=2, d_ff=16, epochs=2, batch_tokens=400, vocabulary_size=150)
    rows = {row: script.ROWS[row] for row in ("base", "(D) no label smoothing", "(B) d_k = 8")}
    claim = replace(script.CLAIM, recipe="toy", common=script.COMMON | sizes, rows=rows)
    patch.setattr(script, "CLAIM", claim)
    patch.setattr(script, "SEARCHES", {"greedy": dict(beam_size=1), "beam 2": dict(beam_size=2)})
    options = ["--runs", folder / "runs", "--seeds", 1, 2]
    return _trained_before(script, folder, patch, options)


def of_few_norms(script, folder, patch):
    """Translators so small that they learn nothing, from forty pairs."""
    patch.setattr(script, "WIDE", dict(d_model=8, num_heads=2, d_ff=8, num_encoder_layers=1))
    options = "--sizes", 4, 8, "--seeds", 1, 2, "--sentences", 40, "--epochs", 2
    return [*options, "--json", folder / "norms.json"]


def of_few_shifts(script, folder, patch):
    """Networks that see forty pictures once."""
    few_pictures(patch, script)
    patch.setattr(script, "SIZE", 4)
    options = "--rates", 0.01, 0.1, "--seeds", 1, 2, "--pictures", 48, "--epochs", 1
    return [*options, "--json", folder / "covariate_shift.json"]


def of_a_small_voice(script, folder, patch):
    """A Llama that was made up, and has no end; which chat says little with."""
    options = [gguf_file.imported(folder), "--threads", 1, "--prompt", 8, "--characters", 600]
    return [*options, "--blocks", 2, "--block", 2, "--json", folder / "speaking.json"]


def of_a_short_lesson(script, folder, patch):
    """The same one, which learns little from little."""
    fields = "--batch-tokens 64 --context 32 --warmup-steps 1"
    options = [gguf_file.imported(folder), "--characters", 900, "--epochs", 1, "--fields", fields]
    return [*options, "--json", folder / "adapters.json"]


def _trained_before(script, folder, patch, options):
    """The options, with which the script has run once; what it trains is there from now on."""
    options += ["--json", folder / f"{script.__name__}.json"]
    assert script.main([str(option) for option in options]) == 0
    patch.setattr(_trained, "minitransformer", None)
    return options


def of_tiny_networks(script, folder, patch):
    """Of a tiny corpus; what tells its memory in a process of its own does so in this one."""
    patch.setattr(script, "recipe_of", lambda kind: recipe_of_kind(kind, folder / kind))
    patch.setattr(script, "in_a_process", lambda function, *arguments: function(*arguments))
    constants = dict(POINTS=((2, 7, 3),), SIDES=(4, 8), BATCHES=2)
    kinds = "residual-network", "vision-transformer"
    return with_few(*ALIKE, RECIPES=kinds, **constants)(script, folder, patch)


GRID = {
    "n": {"at": {"d": 8}, "values": (128, 256, 512)},
    "d": {"at": {"n": 8}, "values": (64, 128, 256)},
}
POINT = {"batch_tokens": 64, "length": 8, "d_model": 64, "layers": 1}
AXES = {"batch_tokens": (64, 128), "length": (8, 16), "layers": (1, 2), "d_model": (64, 128)}
ALIKE = "--blocks", 2, "--block", 1, "--threads", 1  # of layers beside PyTorch's
WORKLOADS = {  # by script: a function of it, a folder and a MonkeyPatch that returns its options
    "adapters": of_a_short_lesson,
    "convolution": with_few(*ALIKE, POINTS=((2, 7),)),
    "decode": of_a_run,
    "fashion_mnist": of_few_pictures,
    "fine_tuning": of_few_labels,
    "ladder": of_two_rungs,
    "language_model": of_short_text,
    "loss_curve": of_steps_in_this_process,
    "many_machines": with_few(
        *("--rounds", 1, "--threads", 1),
        measuring=dict(pieces=40, tokens=256),
        MODELS=("toy", "tiny"),
    ),
    "covariate_shift": of_few_shifts,
    "norms": of_few_norms,
    "picture_claims": of_few_claims,
    "pictures": of_tiny_networks,
    "precision": of_batches(4, "--steps", 4, "--peak-learning-rate", 0.01),
    "profile_step": of_batches(40, "--steps", 40),
    "recurrent": with_few("--batch", 3, "--length", 4, "--width", 5, *ALIKE),
    "restricted": of_lines_run_before,
    "scaling": with_few(
        "--rounds", 1, "--threads", 1, measuring=dict(pieces=40, point=POINT), AXES=AXES
    ),
    "since_2017": of_few_changes,
    "speaking": of_a_small_voice,
    "table_3": of_few_variations,
    "table_1": with_few("--rounds", 1, GRID=GRID, CROSSINGS=(32,)),
    "train_step": of_batches(7, "--against", "reference", "--block", 3),
}
