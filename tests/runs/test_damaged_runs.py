"""A fuzzer of run folders: whatever is done to the files, a run loads as it was or says why not.

Never a wrong translation in silence, never an error that is not documented, never a hang, and never
much memory. ``pytest tests/runs/test_damaged_runs.py --fuzz 600`` goes on for ten minutes.
"""

import os
import pickle
import random
import re
import shutil
import signal
import sys
import warnings
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
from run_files import edit_config, edit_entry, edit_states
from tiny_run import tiny_trainer

from minitransformer.commands.cli import main
from minitransformer.commands.info import run_facts
from minitransformer.core.terminal import OBEYED, readable
from minitransformer.data.text.corpus import CorpusError
from minitransformer.data.text.vocabulary import VocabularyError
from minitransformer.inference.classifier import Classifier
from minitransformer.inference.filler import Filler
from minitransformer.inference.generator import TextGenerator
from minitransformer.inference.labeller import Labeller
from minitransformer.inference.translator import Translator
from minitransformer.runs.checkpoint.file import RunError, load_checkpoint, save_checkpoint
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.task import run_at
from minitransformer.training.recipe import Recipe, RecipeError

DOCUMENTED = RunError, VocabularyError, RecipeError, CorpusError, OSError
SECONDS, BYTES = 20, 2**30  # far more than any of these folders has reason to take
VALUES = [
    *(None, True, False, -1, 0, 1, 2, 3, 7, 10**9, 2**63, 10**400, -(10**400)),
    *(0.5, -1e-9, 1e308, float("nan"), float("inf"), "", "x", "\N{GRINNING FACE}" * 99, "\ud800"),
    *([], [[]], {}, {"a": 1}, [1, 2, 3]),
]


LOADERS = {
    "transformer": partial(Translator.load, threads=1),
    "language-model": TextGenerator.load,
    "adapters": TextGenerator.load,
    "masked-language-model": Filler.load,
    "tagger": Labeller.load,
    "small-network": Classifier.load,
}


@pytest.fixture(params=LOADERS)
def kind(request):
    return request.param


@pytest.fixture
def runs(kind, runs_of):
    return runs_of(kind)


# What is done to them


def flip_a_bit(rng, run, other):
    path = any_file(rng, run)
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def cut_short(rng, run, other):
    path = any_file(rng, run)
    content = path.read_bytes()
    path.write_bytes(content[: rng.randrange(len(content))])


def overwrite_a_stretch(rng, run, other):
    path = any_file(rng, run)
    content = path.read_bytes()
    start = rng.randrange(len(content))
    stop = start + rng.choice([1, 4, 64, 512])
    stretch = rng.choice([bytes(stop - start), rng.randbytes(stop - start), content[:99], b""])
    path.write_bytes(content[:start] + stretch + content[stop:])


def exchange_two(rng, run, other):
    first, second = any_file(rng, run), any_file(rng, run)
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)


def take_one_of_another_run(rng, run, other):
    path = any_file(rng, other)
    shutil.copy(path, run / path.relative_to(other) if rng.random() < 0.7 else any_file(rng, run))


def remove_one(rng, run, other):
    any_file(rng, run).unlink()


def edit_the_configuration(rng, run, other):
    edit_config(run, partial(edit, rng))


def edit_the_log(rng, run, other):
    edit_entry(
        run, rng.randrange((run / "metrics.jsonl").read_text().count("\n")), partial(edit, rng)
    )


def edit_a_state(rng, run, other):
    """With the right checksum, as only somebody who means it would."""
    with suppress(TypeError, ValueError):  # JSON has no word for all of it
        edit_states([rng.choice(sorted(run.rglob("*.npz")))], partial(edit, rng))


HARM = [
    *(flip_a_bit, cut_short, overwrite_a_stretch, exchange_two, take_one_of_another_run),
    *(remove_one, edit_the_configuration, edit_the_log, edit_a_state),
]


def any_file(rng, run):
    return rng.choice(sorted(path for path in run.rglob("*") if path.is_file()))


def edit(rng, record):
    """Replace, remove or add something somewhere in a dict of dicts."""
    name = rng.choice(sorted(record))
    if isinstance(record[name], dict) and record[name] and rng.random() < 0.9:
        edit(rng, record[name])
    elif rng.random() < 0.2:
        del record[name]
    elif rng.random() < 0.1:
        record[f"{name}s"] = rng.choice(VALUES)
    else:
        record[name] = rng.choice(VALUES)


# What may come of it


def loaded(run):
    """What is translated with, say; quicker to compare than translations."""
    config, _ = RunFolder(run).load_config()
    loaded = LOADERS[config.kind](run, "cpu")
    known = (
        loaded.vocabulary.model
        if hasattr(loaded, "vocabulary")
        else pickle.dumps(loaded.statistics)
    )
    return loaded.model.config, loaded.model.flat.data.tobytes(), known


def information(run):
    """But for how many processes it was begun with, which only the configuration says."""
    facts = run_facts(run_at(run)).items()
    facts = {name: str(fact).replace(str(run), "RUN") for name, fact in facts}
    return {name: re.sub(r"mpiexec -n \d+ ", "", fact) for name, fact in facts.items()}


def resumed(run):
    """What a training goes on from."""
    trainer = tiny_trainer(Recipe.of_run(RunFolder(run)), run)
    arrays = trainer.model.flat.data, *trainer.optimizer.vectors.values()
    state = trainer.step, trainer.epoch, trainer.position, trainer.optimizer.t, trainer.best
    return [array.tobytes() for array in arrays], state


def outcome(use, run):
    """What ``use`` returns, or the documented error; and whether there was a warning."""
    with warnings.catch_warnings(record=True) as told, bounded():
        warnings.simplefilter("always")
        try:
            return use(run), bool(told)
        except DOCUMENTED as error:
            return error, bool(told)


@contextmanager
def bounded():
    """The time and the memory that a folder may take."""
    resource = pytest.importorskip("resource")

    def late(signum, frame):
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of the processor
    limits = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (data_in_use() + BYTES, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, limits)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def data_in_use():
    """What counts against RLIMIT_DATA, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("VmData"))


def acceptable(original, folder):
    """What each use may return, by the use and whether there was a warning.

    A warning says that the newest checkpoint was passed over, or that a note was missing.
    """
    found = {}
    for finished in (True, False):
        run = shutil.copytree(original, folder / str(finished))
        if not finished:
            (run / "model.npz").unlink()
        for use in USES:
            found[finished, use, False] = [outcome(use, run)[0]]
        max((run / "checkpoints").iterdir()).unlink()
        for use in USES:
            found[finished, use, True] = [*found[finished, use, False], outcome(use, run)[0]]
    assert not any(isinstance(result, DOCUMENTED) for each in found.values() for result in each)
    return found


USES = [loaded, information, resumed]


@pytest.mark.parametrize(
    ("first", "end"), [(0, 100), pytest.param(100, 300, marks=pytest.mark.slow)]
)
def test_a_damaged_run_loads_as_it_was_or_says_why_not(runs, first, end, tmp_path, fuzz_cases):
    original, other = runs
    expected = acceptable(original, tmp_path)
    refused = dict.fromkeys(HARM, 0)
    for seed in islice(fuzz_cases(end), first, None):
        rng = random.Random(seed)
        run = shutil.copytree(original, tmp_path / "run")
        finished = rng.random() < 0.5
        if not finished:
            (run / "model.npz").unlink()
        harm = HARM[seed % len(HARM)]
        harm(rng, run, other)
        log = run / "metrics.jsonl"
        log_as_it_was = log.exists() and log.read_bytes() == (original / log.name).read_bytes()
        every_use = seed % 11 == 0 or harm in (edit_the_configuration, edit_the_log)
        for use in USES if every_use else USES[:1]:
            found, warned = outcome(use, run)
            if isinstance(found, DOCUMENTED):
                refused[harm] += 1
                problem = not str(found) or len(str(found)) > 3000
            elif use is information and not log_as_it_was:
                problem = False  # what the log says has no checksum
            elif use is not loaded and harm is edit_a_state:
                problem = False  # whoever makes the checksum right, too, is believed
            elif harm is remove_one:  # as in a run cut off earlier
                problem = found not in expected[finished, use, False] + expected[False, use, True]
            else:
                problem = found not in expected[finished, use, warned]
            told = f"seed {seed}: {use.__name__} after {harm.__name__}: {str(found)[:3000]}"
            assert not problem, told
        shutil.rmtree(run)
    assert all(refused.values()), refused  # each of them does harm


# What a terminal is told of them

HOSTILE = "\x1b]0;x\x07\x1b[2J\r\x9b1m\x7f\u202e\u2066"
TRIED = {"transformer": "translate", "language-model": "generate", "tagger": "tag"}
TRIED |= {"small-network": "classify"}


def taint(rng, record):
    """Put control characters into a value or a name somewhere in a dict of dicts."""
    name = rng.choice(sorted(record))
    if isinstance(record[name], dict) and record[name] and rng.random() < 0.8:
        taint(rng, record[name])
    elif rng.random() < 0.3:
        record[f"{name}{HOSTILE}"] = record.pop(name)
    elif rng.random() < 0.3:
        record[HOSTILE] = rng.choice([1, "x"])
    else:
        record[name] = f"{record[name]}{HOSTILE}"


def hostile_configuration(rng, run):
    edit_config(run, partial(taint, rng))


def hostile_log(rng, run):
    edit_entry(run, 0, partial(taint, rng))


def hostile_state(rng, run):
    edit_states([rng.choice(sorted(run.rglob("*.npz")))], partial(taint, rng))


def hostile_origin(rng, run):
    paths = run.glob("[mb]*.npz")  # of the model, and of what it began with
    edit_states(paths, lambda state: state.update(origin=HOSTILE))


def hostile_array(rng, run):
    for path in run.rglob("*.npz"):
        arrays, state = load_checkpoint(path)
        name = rng.choice(sorted(arrays))
        arrays[f"{name}{HOSTILE}"] = arrays.pop(name)
        save_checkpoint(path, arrays, state)


def hostile_vocabulary(rng, run):
    """As in a folder of an older release, which notes no checksum of it."""
    path = run / "vocabulary.model"
    if path.exists():
        path.write_bytes(path.read_bytes().replace("▁b".encode(), "▁\x1b".encode()))
    else:
        names = [HOSTILE, "b", "c"]
        edit_states([run / "statistics.npz"], lambda state: state.update(classes=names))
    edit_states(run.rglob("*.npz"), lambda state: state.pop("bound", None))


def hostile_functions(rng, run):
    content = rng.choice([f"raise ValueError({HOSTILE!r})", f"print({HOSTILE!r})", "1 +" + HOSTILE])
    (run / "own.py").write_text(content)


def hostile_name(rng, run):
    (run / HOSTILE).write_text("")
    (run / "config.json").unlink()


@pytest.mark.skipif(os.name != "posix", reason="elsewhere no file has such a name")
@pytest.mark.filterwarnings("default")
def test_nothing_of_a_foreign_folder_makes_a_terminal_obey(
    runs, kind, picture, tmp_path, fuzz_cases, capfd, monkeypatch
):
    """Whatever command of a user's looks at it, in both streams.

    Pictures are drawn of the configuration and the log alone.
    """
    original, _ = runs
    harms = [harm for name, harm in globals().items() if name.startswith("hostile_")]
    escaped = 0
    for seed in fuzz_cases(len(harms)):
        rng = random.Random(seed)
        run = shutil.copytree(original, tmp_path / f"run{HOSTILE}")
        if rng.random() < 0.5:
            (run / "model.npz").unlink()
        harm = harms[seed % len(harms)]
        harm(rng, run)
        drawn = [["plot", run]] if harm in (hostile_configuration, hostile_log) else []
        for command in (
            ["info", run],
            ["compare", run],
            *drawn,
            [TRIED.get(kind, "fill"), run, picture if kind == "small-network" else "bao ___"],
            ["evaluate", run],
            ["explore", run, "--no-open"],
            ["check", "own", "--file", run / "own.py"],
            ["train", "tagger", "--from", run, "--epochs", 0],
            ["train", "toy", "--run-folder", run],
            ["train", "--resume", run, "--own", run / "own.py"],
            ["train", "--resume", run],
        ):
            monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
            with suppress(SystemExit):
                main([*map(str, command)])
            said = "".join(capfd.readouterr())
            assert not OBEYED.search(said), (seed, harm.__name__, command[0], said)
            escaped += readable(HOSTILE) in said.replace(readable(str(run)), "")
        shutil.rmtree(run)
    assert escaped
