"""What is done to a file of a run, who refuses the run for it, and what they say: a row each.

A model is its configuration, its vocabulary and its weights; a training its recipe and text too. A
folder from anywhere holds files of the documented kinds, or there is an error, which names the
file. Whoever refuses leaves the folder as it was. A new kind of file wants rows in ``ROWS``.
"""

import os
import re
import shutil
import webbrowser
from typing import NamedTuple

import pytest
from run_files import edit_config, edit_states

from minitransformer.commands.cli import main
from minitransformer.data.text.characters import save_vocabulary
from minitransformer.data.text.vocabulary import Vocabulary
from minitransformer.runs.checkpoint.file import load_checkpoint, save_checkpoint

COMMANDS = {
    "translate": ["translate", "RUN", "bao gi ku", "du"],
    "info": ["info", "RUN"],
    "evaluate": ["evaluate", "RUN"],
    "epochs": ["evaluate", "RUN", "--checkpoints"],
    "classify": ["classify", "RUN", "PICTURE"],
    "explore": ["explore", "RUN"],
    "plot": ["plot", "RUN"],
    "compare": ["compare", "RUN"],
    "train": ["train", "--resume", "RUN"],
    "start-over": ["train", "--resume", "RUN", "--start-over"],
    "begin": ["train", "tagger", "--from", "RUN"],
    "generate": ["generate", "RUN", "bao", "--length", "3"],
    "merge": ["merge", "RUN", "RUN-merged"],
    "score": ["evaluate", "RUN", "--text", "RUN/../corpus/train.source"],
}
LEFT_OUT = object()


class Row(NamedTuple):
    """A claim.

    Attributes:
        harm: what is done: a function of the run and of another one like it.
        refuse: the ``COMMANDS`` that then end with 1 and a line.
        says: what stands in that line, RUN for the folder and … for whatever stands between.
        of: the run, one of ``KINDS`` of ``conftest.py``.
        same: those that say what they said before.
    """

    harm: object
    refuse: str
    says: str
    of: str = "finished"
    same: str = ""


# What is done


def edited(*sections, **changes):
    """Fields of a section of config.json."""

    def change(config):
        for name in sections:
            config = config[name]
        config.update(changes)

    return lambda run, other: edit_config(run.path, change)


def both(first, second):
    return lambda run, other: (first(run, other), second(run, other))


def written(name, content):
    return lambda run, other: (run.path / name).write_bytes(content)


def with_a_line(line):
    """In place of the fourth of the log, which goes on."""

    def harm(run, other):
        lines = run.log.path.read_bytes().splitlines()
        run.log.path.write_bytes(b"\n".join([*lines[:3], line, *lines[3:], b""]))

    return harm


def with_recipe(recipe):
    return lambda run, other: run.save_config(run.load_config()[0], recipe)


def state_of(find, **changes):
    """Changes the state in the checkpoint that ``find`` finds, and leaves its arrays."""

    def change(state):
        for name, value in changes.items():
            state.pop(name) if value is LEFT_OUT else state.update({name: value})

    return lambda run, other: edit_states([find(run)], change)


def the_model(run):
    return run.model


def newest(run):
    return max(run.checkpoints.iterdir())


def best(run):
    return run.epoch_file(load_checkpoint(newest(run))[1]["best"]["epoch"])


def at(name):
    return lambda run: run.path / name


def pipe(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/zero")


def made(kind, find):
    """Another kind of file in place of this one."""

    def harm(run, other):
        find(run).unlink()
        kind(find(run))

    return harm


def lost(*finds):
    def harm(run, other):
        for find in finds:
            path = find(run)
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return harm


def cut(find, size=300):
    return lambda run, other: os.truncate(find(run), size)


def all_checkpoints_cut(run, other):
    for path in run.checkpoints.iterdir():
        os.truncate(path, 1000)


def huge(name, size=10**12):
    """Which takes no room on the disk, until somebody copies it."""
    return cut(at(name), size)


def of_another(*names):
    """Files and folders of another run, where the run has them."""

    def harm(run, other):
        for name in names:
            if (run.path / name).is_dir():
                shutil.rmtree(run.path / name)
                shutil.copytree(other / name, run.path / name)
            elif name != "model.npz" or run.model.exists():
                shutil.copy(other / name, run.path / name)

    return harm


def a_flipped_bit_in_the_vocabulary(run, other):
    path = run.attached["vocabulary"]
    content = bytearray(path.read_bytes())
    content[content.index("▁b".encode()) + 3] ^= 1
    Vocabulary(bytes(content))  # which is none the wiser
    path.write_bytes(content)


def a_shortened_text(run, other):
    for path in (run.path.parent / "corpus").glob("train.*"):
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:30]))


def a_replaced_text(run, other):
    for path in (other.parent / "corpus").glob("validation.*"):
        shutil.copy(path, run.path.parent / "corpus")


def a_text_that_is(kind):
    def harm(run, other):
        kind(run.path / "text")
        edited("recipe", "data", train_source=str(run.path / "text"))(run, other)

    return harm


def names_exchanged(folder):
    def harm(run, other):
        first, second = sorted((run.path / folder).iterdir())[-2:]
        first.rename(aside := run.path / "aside")
        second.rename(first)
        aside.rename(second)

    return harm


def an_epoch_in_place_of_the_model(run, other):
    shutil.copy(run.epoch_file(1), run.model)


def other_numbers(run, other):
    arrays, state = load_checkpoint(run.path / "beginning.npz")
    save_checkpoint(run.path / "beginning.npz", {n: a + 1 for n, a in arrays.items()}, state)


def a_beginning(run, other):
    shutil.copy(run.epoch_file(1), run.path / BEGINNING)


def statistics_that(change):
    """What a run knows of its pictures, changed as ``change`` changes arrays and state.

    As in a folder of an older release: no checkpoint notes what it was.
    """

    def harm(run, other):
        arrays, state = load_checkpoint(run.path / STATISTICS)
        change(arrays, state)
        save_checkpoint(run.path / STATISTICS, arrays, state)
        made_old(run, other)

    return harm


def made_old(run, other):
    """As older releases have written all checkpoints, without a note."""
    edit_states(run.path.rglob("*.npz"), lambda state: state.pop("bound", None))


def a_vocabulary_of_another_size(run, other):
    texts = (run.path.parent / "corpus" / "train.source").read_text().splitlines()
    save_vocabulary(run.attached["vocabulary"], Vocabulary.train(texts, 30))


# Who refuses it

VOCABULARY, CONFIG, MODEL = "vocabulary.model", "config.json", "model.npz"
LOG, BEGINNING, STATISTICS = "metrics.jsonl", "beginning.npz", "statistics.npz"
IRREGULAR = [pipe, device] if hasattr(os, "mkfifo") else []
ALL = "translate info evaluate explore train"
AMID = dict(epoch=2, best={"bleu": 1.0, "epoch": 2})  # an epoch, where a position counts
CONFIG_IS_DAMAGED, LINE_IS_DAMAGED = f"RUN/{CONFIG} is damaged: ", f"RUN/{LOG}, line 4 is damaged: "
WRONG_NOTE = dict(model=[], vocabulary="", recipe={}, texts={})
ANOTHER = f"{VOCABULARY} has SHA-256 "
ROWS = [
    # No regular file, or without reason to be so large
    *(Row(made(kind, at(name)), ALL, f"RUN/{name}…this is no regular file")
      for kind in IRREGULAR for name in (CONFIG, VOCABULARY, MODEL)),
    *(Row(made(kind, at(LOG)), "info plot compare train", "this is no regular file", "unfinished")
      for kind in IRREGULAR),
    *(Row(a_text_that_is(kind), "train", "RUN/text: this is no regular file", "unfinished")
      for kind in IRREGULAR),
    *(Row(huge(name), "info", f"RUN/{name}…bytes at most, and this one more")
      for name in (CONFIG, VOCABULARY, LOG)),
    *(Row(cut(at(name)), ALL, f"RUN…{name}") for name in (CONFIG, VOCABULARY)),
    Row(cut(at(MODEL)), ALL, f"RUN/{MODEL} is no checkpoint, or a damaged one…"
        "minitransformer train --resume RUN makes it again"),
    # What the configuration holds
    Row(lost(at(CONFIG)), ALL, "RUN is no run folder: it has no config.json"),
    *(Row(written(CONFIG, text), "translate info evaluate train", CONFIG_IS_DAMAGED) for text in (
        b"", b"{", b"{}", b"[]", b"\xff", b"1" * 10**4, b"[" * 10**5,
        b'{"model": {}, "recipe": ' + b"[" * 10**5,
        b'{"model": [], "recipe": {}}', b'{"model": {}, "recipe": []}',
        b'{"model": {"d": 1}, "recipe": {}}', b'{"model": {"d_model": 8}, "recipe": {}}',
    )),
    *(Row(with_recipe(recipe), "info evaluate train", f"RUN/{CONFIG}: ") for recipe in (
        {"data": []}, {"more": {}}, {"training": {"seed": "0"}}, {"training": {"seeds": 0}},
        {"training": {"peak_learning_rate": None}}, {"data": {"corpus": {}}},
        {"model": {"num_heads": 1.5}},
    )),
    *(Row(edited("model", **{name: 10**400}), "translate", f"{CONFIG_IS_DAMAGED}{name}=1000")
      for name in ("max_length", "num_encoder_layers", "d_ff")),
    *(Row(edited("model", **{name: 10**9}), "translate", f"{CONFIG_IS_DAMAGED}{name}={10**9} must")
      for name in ("max_length", "num_decoder_layers")),
    # What no page can hold
    Row(edited("model", kind="restricted", window=3), "explore",
        "this one is of kind 'restricted'"),
    Row(edited("model", d_model=1024, d_ff=4096), "explore", "and 40,000,000 are the most"),
    # What the log holds
    *(Row(with_a_line(line), "info plot compare train", LINE_IS_DAMAGED, "unfinished") for line in (
        b"[]", b"3", b"{}", b"[" * 10**5, b"\xff", b'{"kind": 3}', b'{"kind": "train"}',
        b'{"kind": "test", "step": 1}',
        b'{"kind": "train", "step": -1}', b'{"kind": "train", "step": true}',
        b'{"kind": "train", "step": 1, "nll": "low"}', b'{"kind": "train", "step": 1, "nll": NaN}',
        b'{"kind": "train", "step": 1, "learning_rate": [1]}',
        b'{"kind": "validation", "step": 1, "epoch": 1, "seconds": 2.5, "left_out": 3}',
        b'{"kind": "validation", "step": 1, "bleu": 1.0}',
        b'{"kind": "validation", "step": 1, "epoch": 1.5, "bleu": 1.0}',
        b'{"kind": "validation", "step": 1, "epoch": 1, "bleu": 1e999}',
    )),
    # What checkpoints say of themselves
    *(Row(state_of(newest, **changes), "train", "RUN", "unfinished") for changes in (
        *({name: LEFT_OUT} for name in ("step", "epoch", "seconds", "best")),
        *({name: -1} for name in ("step", "epoch")),
        *({name: 10**400} for name in ("step", "epoch", "seconds")), {"seconds": -(10**400)},
        *(AMID | {"position": position} for position in (LEFT_OUT, -1, 10**400, 1.0)),
        {"epoch": 4}, {"seconds": "long"}, {"best": []}, {"best": {"bleu": 1.0}},
        *({"best": {"bleu": bleu, "epoch": e}} for bleu, e in (("high", 1), (1.0, 0), (1.0, 4))),
    )),
    Row(state_of(newest, **AMID, position=10**9), "train", "is of batch 1000000000 of an epoch of",
        "unfinished"),
    *(Row(state_of(the_model, **changes), "translate info train", f"RUN/{MODEL} is damaged: it")
      for changes in (
        *({"origin": origin} for origin in (LEFT_OUT, ["epoch 1"])),
        *({"validation_bleu": bleu} for bleu in (LEFT_OUT, "high", 10**400)),
    )),
    Row(an_epoch_in_place_of_the_model, "translate", f"RUN/{MODEL} is damaged: it has no origin"),
    *(Row(state_of(the_model, bound=bound), "translate", f"RUN/{MODEL}, bound is damaged")
      for bound in (None, 3, {}, {"model": {}}, WRONG_NOTE)),
    *(Row(names_exchanged(folder), "train", f"is of {unit} …; give it its name back", "unfinished")
      for folder, unit in (("checkpoints", "step"), ("epochs", "epoch"))),
    # What they are bound to: what makes a model everyone refuses, if it is another
    *(Row(harm, "translate info train", says, of)
      for of in ("finished", "unfinished") for harm, says in (
        (both(edited("model", num_heads=1), edited("recipe", "model", num_heads=1)),
         "config.json says num_heads 1, the checkpoint was trained with 2"),
        (edited("model", epsilon=1e-3),
         "config.json says epsilon 0.001, the checkpoint was trained with 1e-05"),
        (a_flipped_bit_in_the_vocabulary, ANOTHER),
        (written(VOCABULARY, b'{"characters": "ab"}'), ANOTHER),
        (of_another(VOCABULARY), ANOTHER),
        (of_another("checkpoints", "epochs", MODEL), ANOTHER),
    )),
    Row(edited("model", labels="k d g b"), "info train", "says labels k d g b, ", "began"),
    Row(edited("model", num_heads=1), "begin", "config.json says num_heads 1", "masked"),
    Row(of_another("epochs/epoch-0003.npz"), "epochs", ANOTHER),
    *(Row(of_another(f"epochs/{name}"), "train", f"says {name}", "unfinished")
      for name in ("epoch-0003.npz", "epoch-0001.npz")),  # of which the average needs only one
    # and what makes a training those who show it or go on with it
    *(Row(edited("recipe", "training", **{name: value}), refuse, says, of, "translate")
      for of, refuse in (("finished", "info train"), ("unfinished", "train"))
      for name, value, says in (
        ("seed", 3, "config.json says seed 3, the checkpoint was trained with 0"),
        ("peak_learning_rate", 0.5,
         "config.json says peak_learning_rate 0.5, the checkpoint was trained with 0.01"),
    )),
    Row(a_shortened_text, "train",
        "the training data have changed: they are 30 pairs of SHA-256 ", "unfinished", "translate"),
    Row(a_replaced_text, "train",
        "the validation data have changed: they are 6 pairs of SHA-256", "unfinished", "translate"),
    Row(edited("recipe", "model", num_heads=1), "train", "num_heads is 2 there, and 1 here",
        "unfinished"),
    # in a folder of an older release, where nothing is noted, too
    Row(both(made_old, a_vocabulary_of_another_size), "translate",
        "has 30 pieces and the model of … 36; take both"),
    # What is known of pictures
    *(Row(harm, "classify evaluate info", STATISTICS, "pictures")
      for harm in (cut(at(STATISTICS)), lost(at(STATISTICS)), of_another(STATISTICS))),
    Row(of_another(STATISTICS), "train", f"{STATISTICS} has SHA-256 ", "pictures cut off"),
    *(Row(statistics_that(change), "classify", f"RUN/{STATISTICS} is damaged", "pictures")
      for change in (
        lambda arrays, state: arrays.pop("deviation"),
        lambda arrays, state: arrays["deviation"].fill(0),
        lambda arrays, state: arrays["mean"].fill(float("nan")),
        lambda arrays, state: arrays.update(mean=arrays["mean"][0]),
        lambda arrays, state: arrays.update(components=arrays["components"][1:]),
        lambda arrays, state: state.pop("classes"),
        lambda arrays, state: state.update(classes=[1, 2, 3]),
    )),
    *(Row(statistics_that(change), "classify", "take both from one run", "pictures")
      for change in (
        lambda arrays, state: state["classes"].pop(),
        lambda arrays, state: arrays.update(mean=arrays["mean"][1:]),
    )),
    # Something is missing, and never from zero in silence
    Row(lost(at(VOCABULARY)), ALL, VOCABULARY),
    Row(lost(at(LOG)), "plot", f"RUN has no {LOG}: nothing was trained there"),
    Row(lost(at(MODEL), at("checkpoints")), "translate evaluate explore",
        f"RUN has no {MODEL} and no whole checkpoint yet"),
    *(Row(harm(best), "train", "RUN/epochs/epoch-", "unfinished") for harm in (lost, cut)),
    Row(lost(at("checkpoints"), at(LOG)), "train", "there is epochs", "unfinished"),
    Row(lost(at("checkpoints"), at("epochs")), "train", f"there is {LOG}.", "unfinished"),
    Row(all_checkpoints_cut, "train", f"there is {LOG}, checkpoints/step-…, checkpoints/step-…, "
        "epochs/epoch-0001.npz, …train --resume RUN --start-over, which", "unfinished"),
    # What a training began with
    Row(other_numbers, "train",
        f"{BEGINNING} has SHA-256 …, and the run was trained with one of SHA-256", "cut off"),
    Row(lost(at(BEGINNING)), "train",
        f"{BEGINNING} is missing, and the run was trained with one of SHA-256", "cut off"),
    Row(a_beginning, "train", f"{BEGINNING} has … was trained without one", "unfinished"),
    Row(cut(at(BEGINNING)), "train info", BEGINNING, "began"),
    Row(huge(BEGINNING, 10**9), "train start-over",
        f"{BEGINNING} is no checkpoint, or a damaged one", "began"),
    *(Row(made(kind, at(BEGINNING)), "start-over", "this is no regular file", "began")
      for kind in IRREGULAR),
    # and what adapters adapt, without which nobody uses them
    Row(lost(at(BEGINNING)), "generate merge score train info",
        f"{BEGINNING} is missing, and the run was trained with one of SHA-256", "adapted"),
    Row(other_numbers, "generate merge score train info",
        f"{BEGINNING} has SHA-256 …, and the run was trained with one of SHA-256", "adapted"),
    Row(edited("model", max_length=2**20), "generate merge", "config.json says max_length 1048576",
        "adapted"),
    Row(both(edited("model", max_length=2**20), made_old), "generate merge",
        f"{BEGINNING} is of another model: it holds", "adapted"),
]  # fmt: skip


@pytest.fixture
def use(picture, monkeypatch, capsys):
    """What a command does with a run: its status, its output, and its last line of errors."""
    monkeypatch.setattr(webbrowser, "open", lambda address: True)

    def run(name, folder):
        capsys.readouterr()
        words = [word.replace("RUN", str(folder)) for word in COMMANDS[name]]
        status = main([word.replace("PICTURE", str(picture)) for word in words])
        out, errors = capsys.readouterr()
        return status, out, errors.splitlines()[-1] if errors else ""

    return run


def as_it_is(folder):
    """What would change if a file were written; of what cannot be read, too."""
    found = {}
    for path in folder.rglob("*"):
        about = path.lstat()
        if path.name != "training.lock" and not path.is_dir():
            found[path] = about.st_ino, about.st_size, about.st_mtime_ns
    return found


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.says)
def test_a_harmed_run_is_refused_in_words_and_left_as_it_is(row, copied, use):
    run, other = copied(row.of)
    before = [use(name, run.path) for name in row.same.split()]
    row.harm(run, other)
    files = as_it_is(run.path)
    for name in row.refuse.split():
        status, out, line = use(name, run.path)
        assert (status, out) == (1, ""), name
        assert line.startswith("minitransformer: "), line
        assert len(line) < 1000
        parts = row.says.replace("RUN", str(run.path)).split("…")
        assert re.search(".*".join(map(re.escape, parts)), line), line
    assert as_it_is(run.path) == files
    assert [use(name, run.path) for name in row.same.split()] == before


@pytest.mark.parametrize(
    "of", ["finished", "unfinished", "began", "cut off", "adapted", "pictures", "pictures cut off"]
)
def test_whoever_refuses_a_harmed_run_takes_a_whole_one(of, copied, use):
    run, _ = copied(of)
    names = {name for row in ROWS if row.of == of for name in row.refuse.split()}
    for name in sorted(names, key=list(COMMANDS).index):
        assert use(name, run.path)[0] == 0, name
