"""Translating a test set with minitransformer beside PyTorch, with and without a key/value cache.

    python benchmarks/decode.py --run-folder runs/multi30k --data-dir DIR

All sides have the weights of a trained run, since one of random weights would never end a sentence,
and translate the same test set from ids to ids, greedily and by beam search; without a run folder
the toy model is trained for a little while first. Each side is a process of its own. First they
show that they say the same. Then they take turns, one waiting while the other translates. A ratio
is that of the seconds of all rounds; each round has its own, which shows the spread.

On a CPU our side keeps the memory that it frees, as ``minitransformer translate`` does;
``--tuned-malloc`` lets the other side do so too.
"""

import multiprocessing
import os
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from time import perf_counter
from unittest.mock import patch

from _machine import blas_of, cores, machine, note_on_kernels
from _process import TUNED_MALLOC, require_torch

SEARCHES = ("greedy", "beam")
SAME = 0.97  # of the sentences at least; two words of almost one probability may change places


def main(arguments=None):
    """Measure, print a table and write the JSON; returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parsed(arguments)
    if not options.alone:
        require_torch()
    result = {"kind": "decode", **machine(["decode.py", *arguments])}
    with tempfile.TemporaryDirectory() as folder:
        workload = make_workload(options.run_folder or train_toy(folder), options)
    result |= measure(workload, options)
    print(table(result))
    import _results  # here, as what imports our package: PyTorch's process imports this file

    _results.write(result, options.json)
    return 0


def train_toy(folder):
    """The folder of a short training on the toy corpus."""
    from minitransformer.commands.cli import main as minitransformer

    run_folder = f"{folder}/run"
    status = minitransformer(["train", "toy", "--epochs", "3", "--run-folder", run_folder])
    if status:
        raise SystemExit(f"the toy model could not be trained: exit status {status}")
    return run_folder


def make_workload(run_folder, options):
    """What is to be translated with which model, as a dict of plain values and arrays."""
    from minitransformer.commands.evaluate import TEST_SPLITS
    from minitransformer.data.text.vocabulary import EOS
    from minitransformer.inference.translator import Translator
    from minitransformer.runs.run_folder import RunFolder
    from minitransformer.tasks.splits import load_split
    from minitransformer.training.recipe import Recipe

    recipe = Recipe.from_dict(RunFolder(run_folder).load_config()[1])
    if options.data_dir:
        recipe = recipe.with_value("data_dir", options.data_dir)
    split = TEST_SPLITS[recipe.data.corpus]
    pairs = load_split(recipe.data, split)[: options.sentences]
    translator = Translator.load(run_folder, "cpu")
    longest = translator.model.config.max_length - 1
    encode = translator.vocabulary.encode
    return {
        "corpus": f"{recipe.data.corpus}, {split}",
        "sources": [[*encode(source)[:longest], EOS] for source, _ in pairs],
        "config": asdict(translator.model.config),
        "weights": {path: p.data for path, p in translator.model.named_parameters()},
    }


def measure(workload, options):
    """Compare the sides on a workload; returns a dict, ready for JSON.

    Raises:
        SystemExit: they say different things.
    """
    settings = {
        "device": options.device,
        "threads": options.threads or cores(),
        "beam_size": options.beam_size,
        "alpha": options.alpha,
        "accelerate": not options.no_accelerate,
        "max_tokens": options.torch_max_tokens,
        "tuned_malloc": options.tuned_malloc,
    }
    torch_environment = TUNED_MALLOC if options.tuned_malloc else {}
    searches = {}
    with ExitStack() as held:
        processes = {"ours": held.enter_context(_process(OurSide, workload, settings))}
        if not options.alone:
            torch = _process(TorchSide, workload, settings, torch_environment)
            processes["torch"] = held.enter_context(torch)
        for search in SEARCHES:
            sides = {"ours": (processes["ours"], search)}
            if not options.alone:
                for rival in ["cache"] + ["recompute"] * (search == "greedy"):
                    sides[rival] = processes["torch"], f"{search}_{rival}"
            searches[search] = compare(sides, len(workload["sources"]), options.rounds)
        facts = {name: _ask(process, "facts") for name, process in processes.items()}
    return {
        "corpus": workload["corpus"],
        "sentences": len(workload["sources"]),
        "source_tokens": sum(map(len, workload["sources"])),
        "model": workload["config"],
        "settings": settings,
        "rounds": options.rounds,
        "sides": facts,
        "searches": searches,
    }


def compare(sides, sentences, rounds):
    """Agreement, seconds and ratios of one search; ``sides`` are (process, search) by name."""
    said = {
        name: _ask(process, "translate", search)[0] for name, (process, search) in sides.items()
    }
    agreement = {}
    for rival in list(sides)[1:]:
        same = sum(map(list.__eq__, said["ours"], said[rival])) / sentences
        if same < SAME:
            raise SystemExit(
                f"the sides do not say the same: {same:.1%} of the sentences agree with "
                f"PyTorch ({rival}), and at least {SAME:.0%} should"
            )
        agreement[rival] = same

    seconds = {name: [] for name in sides}
    for i in range(rounds):
        for name in list(sides)[:: 1 if i % 2 == 0 else -1]:
            process, search = sides[name]
            seconds[name].append(_ask(process, "translate", search)[1])
    return {
        "target_tokens": sum(map(len, said["ours"])),
        "same_sentences": agreement,
        "seconds": seconds,
        "sentences_per_second": {
            name: sentences * rounds / sum(taken) for name, taken in seconds.items()
        },
        "ratio": {rival: sum(seconds[rival]) / sum(seconds["ours"]) for rival in agreement},
        "ratio_of_rounds": {
            rival: [
                theirs / ours for ours, theirs in zip(seconds["ours"], seconds[rival], strict=True)
            ]
            for rival in agreement
        },
    }


class OurSide:
    """Translates as a Translator does, from ids to ids."""

    def __init__(self, workload, settings):
        from minitransformer import TransformerConfig
        from minitransformer.core.backend import CPU, select_device
        from minitransformer.core.memory import keep_freed_memory
        from minitransformer.core.workers import Workers
        from minitransformer.models.transformer import Transformer

        self.sources, self.settings = workload["sources"], settings
        device = select_device(settings["device"])
        self.model = Transformer(TransformerConfig(**workload["config"]), device=device)
        for path, parameter in self.model.named_parameters():
            parameter.data[...] = device.asarray(workload["weights"][path])
        self.workers = Workers(settings["threads"] if device == CPU else 1)
        if settings["accelerate"] and device == CPU:
            keep_freed_memory()  # as minitransformer translate does

    def translate(self, search):
        """Ids of all translations, and the seconds they took."""
        from threadpoolctl import threadpool_limits

        from minitransformer.core.twins import accelerated
        from minitransformer.data.text.vocabulary import EOS
        from minitransformer.decoding import translate_ids

        start = perf_counter()
        with threadpool_limits(1, user_api="blas"), accelerated(self.settings["accelerate"]):
            found = translate_ids(
                self.model,
                self.sources,
                beam_size=1 if search == "greedy" else self.settings["beam_size"],
                alpha=self.settings["alpha"],
                workers=self.workers,
            )
        seconds = perf_counter() - start
        return [best.ids + [EOS] * best.finished for best, *_ in found], seconds

    def facts(self):
        return {
            "name": "minitransformer" + ("" if self.settings["accelerate"] else ", reference"),
            "blas": blas_of(self.model.device),
            "threads": f"{self.workers.count} of Python, 1 of the BLAS in each",
        }


class TorchSide:
    """The searches of ``torch_decode.py``."""

    def __init__(self, workload, settings):
        from types import SimpleNamespace

        import torch
        from torch_model import TorchTransformer, load_ours

        torch.set_num_threads(settings["threads"])
        self.sources, self.settings = workload["sources"], settings
        config = SimpleNamespace(**workload["config"])
        self.model = load_ours(TorchTransformer(config), workload["weights"]).eval()
        self.model.to(settings["device"])

    def translate(self, search):
        """As :meth:`OurSide.translate`."""
        import torch_decode

        options = {"max_tokens": self.settings["max_tokens"]}
        if search == "beam_cache":
            width = self.settings["beam_size"]
            options = dict(beam_size=width, alpha=self.settings["alpha"])
            options["max_tokens"] = self.settings["max_tokens"] // width
        function = {
            "greedy_cache": torch_decode.greedy,
            "greedy_recompute": torch_decode.recomputing_greedy,
            "beam_cache": torch_decode.beam_search,
        }[search]
        start = perf_counter()
        found = torch_decode.translate(self.model, self.sources, function, **options)
        return found, perf_counter() - start

    def facts(self):
        import torch
        from _torch_side import torch_blas

        return {
            "name": f"PyTorch {torch.__version__}"
            + ", tuned malloc" * self.settings["tuned_malloc"],
            "blas": torch_blas(self.settings["device"]),
            "threads": f"{torch.get_num_threads()} of PyTorch",
        }


@contextmanager
def _process(side, workload, settings, environment=None):
    """A side in a process of its own, as the connection to it.

    ``environment`` holds variables to add to those of this process.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, side, workload, settings), daemon=True)
    with patch.dict(os.environ, environment or {}):  # which the process inherits
        process.start()
    there.close()
    try:
        yield here
    finally:
        here.close()
        process.join()


def _serve(connection, side, workload, settings):
    served = side(workload, settings)
    while True:
        try:
            method, arguments = connection.recv()
        except EOFError:
            return
        connection.send(getattr(served, method)(*arguments))


def _ask(connection, method, *arguments):
    """What the method of a side returns."""
    try:
        connection.send((method, arguments))
        return connection.recv()
    except (EOFError, ConnectionError):
        raise SystemExit("a side failed; its own message stands above") from None


NAMES = {"ours": "minitransformer", "cache": "PyTorch, cache", "recompute": "PyTorch, no cache"}


def table(result):
    """A result as text."""
    settings = result["settings"]
    lines = [
        f"{result['cpu']}, {result['cores']} cores",
        f"{result['corpus']}: {result['sentences']} sentences, {result['source_tokens']} tokens; "
        f"d_model {result['model']['d_model']}, vocabulary "
        f"{result['model']['target_vocabulary_size']}",
    ]
    for facts in result["sides"].values():
        lines.append(f"{facts['name']}: {facts['blas']}; threads: {facts['threads']}")
    for search, found in result["searches"].items():
        width = f" {settings['beam_size']}, alpha {settings['alpha']}" * (search == "beam")
        lines += ["", f"{search}{width}: {found['target_tokens']} tokens"]
        for name, speed in found["sentences_per_second"].items():
            line = f"  {NAMES[name]:<18}{speed:>8.1f} sentences/s"
            if name in found["ratio"]:
                ratios = found["ratio_of_rounds"][name]
                line += (
                    f"  ratio {found['ratio'][name]:.2f} ({min(ratios):.2f} to {max(ratios):.2f} "
                    f"in {len(ratios)} rounds), {found['same_sentences'][name]:.1%} the same"
                )
            lines.append(line)
    note = note_on_kernels(result["environment"])
    lines += ["", *note] if note else []
    return "\n".join(lines)


def _parsed(arguments):
    import _options

    from minitransformer.commands.arguments import positive

    parser = _options.parser(__doc__.splitlines()[0], "--device", "--threads", "--json")
    add = parser.add_argument
    add("--run-folder", help="a run with three-way tying; by default the toy model is trained")
    add("--data-dir", help="folder with Multi30k, if the run is one of it")
    add("--sentences", type=positive, help="the first so many of the test set; all by default")
    add("--beam-size", type=positive, default=5, help="of the beam search")
    add("--alpha", type=float, default=0.6, help="exponent of the length penalty")
    add("--rounds", type=positive, default=3, help="how often each side translates everything")
    add("--alone", action="store_true", help="our side alone, where there is no PyTorch")
    add("--no-accelerate", action="store_true", help="our code without its faster twins")
    add("--tuned-malloc", action="store_true", help="tune the allocator of PyTorch's side")
    add(
        "--torch-max-tokens",
        type=positive,
        default=4096,
        help="in a batch of PyTorch's, times the beam",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    import _options

    _options.end(main)
