"""A model is its configuration, its vocabulary and its weights; a training its recipe and text too.

Whatever of these is exchanged under a run is refused by who would be misled, in words.
"""

import gzip
import hashlib
import json
import re
import shutil

import pytest
from tiny_run import record, tiny_recipe, tiny_trainer, trained

from minitransformer.commands.cli import main
from minitransformer.commands.info import run_facts
from minitransformer.data.text.characters import save_vocabulary
from minitransformer.data.text.vocabulary import Vocabulary
from minitransformer.inference.translator import Translator
from minitransformer.runs.checkpoint.file import RunError, load_checkpoint, save_checkpoint
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.task import run_at
from minitransformer.tasks.text import TextTask
from minitransformer.training.recipe import Recipe

TRAIN = ["train", "--resume"]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """The folder of a whole run, beside the folder of its corpus."""
    folder = tmp_path_factory.mktemp("original")
    trained(tiny_recipe(folder / "corpus"), folder / "run")
    return folder / "run"


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """A run of the same sizes, on another text with another vocabulary."""
    folder = tmp_path_factory.mktemp("other")
    recipe = tiny_recipe(folder / "corpus")
    for path in (folder / "corpus").iterdir():
        path.write_text(path.read_text().replace("b", "p"))
    trained(recipe, folder / "run")
    return folder / "run"


@pytest.fixture
def run(original, tmp_path):
    """A copy of a run that is over, and of its corpus, to be harmed."""
    shutil.copytree(original.parent, tmp_path, dirs_exist_ok=True)
    edit(tmp_path / "run", "recipe", "data", **corpus_in(tmp_path / "corpus"))
    return tmp_path / "run"


@pytest.fixture
def unfinished(run):
    (run / "model.npz").unlink()
    return run


def corpus_in(folder, suffix=""):
    names = [
        f"{split}_{side}" for split in ("train", "validation") for side in ("source", "target")
    ]
    return {name: str(folder / name.replace("_", ".")) + suffix for name in names}


def edit(run, *sections, **changes):
    """Change fields of config.json."""
    config = json.loads((run / "config.json").read_text())
    section = config
    for name in sections:
        section = section[name]
    section.update(changes)
    (run / "config.json").write_text(json.dumps(config))


def resume(run):
    trainer = tiny_trainer(Recipe.of_run(RunFolder(run)), run)
    trainer.train()
    return trainer


def translate(run):
    return Translator.load(run, "cpu").translate(["bao gi ku", "du"], beam_size=1)


def info(run):
    return run_facts(run_at(run))


# What each of them refuses


def another_number_of_heads(run, other):
    edit(run, "model", num_heads=1)
    edit(run, "recipe", "model", num_heads=1)
    return "config.json says num_heads 1, the checkpoint was trained with 2"


def another_epsilon(run, other):
    edit(run, "model", epsilon=1e-3)
    return "config.json says epsilon 0.001, the checkpoint was trained with 1e-05"


def a_flipped_bit_in_the_vocabulary(run, other):
    vocabulary = bytearray((run / "vocabulary.model").read_bytes())
    vocabulary[vocabulary.index("▁b".encode()) + 3] ^= 1
    Vocabulary(bytes(vocabulary))  # which is none the wiser
    (run / "vocabulary.model").write_bytes(vocabulary)
    return "vocabulary.model has SHA-256 "


def the_vocabulary_of_another_run(run, other):
    shutil.copy(other / "vocabulary.model", run)
    return "vocabulary.model has SHA-256 "


def the_weights_of_another_run(run, other):
    for name in ("checkpoints", "epochs"):
        shutil.rmtree(run / name)
        shutil.copytree(other / name, run / name)
    if (run / "model.npz").exists():
        shutil.copy(other / "model.npz", run)
    return "vocabulary.model has SHA-256 "


def another_seed(run, other):
    edit(run, "recipe", "training", seed=3)
    return "config.json says seed 3, the checkpoint was trained with 0"


def another_rate(run, other):
    edit(run, "recipe", "training", peak_learning_rate=0.5)
    return "config.json says peak_learning_rate 0.5, the checkpoint was trained with 0.01"


def a_shortened_text(run, other):
    for path in (run.parent / "corpus").glob("train.*"):
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:30]))
    return "the training data have changed: they are 30 pairs of SHA-256 "


def a_replaced_text(run, other):
    for path in (other.parent / "corpus").glob("validation.*"):
        shutil.copy(path, run.parent / "corpus")
    return "the validation data have changed: they are 6 pairs of SHA-256 "


OF_THE_MODEL = [
    another_number_of_heads,
    another_epsilon,
    a_flipped_bit_in_the_vocabulary,
    the_vocabulary_of_another_run,
    the_weights_of_another_run,
]
OF_THE_RECIPE = [another_seed, another_rate]
OF_THE_TEXT = [a_shortened_text, a_replaced_text]


@pytest.mark.parametrize("exchange", OF_THE_MODEL)
def test_what_makes_a_model_is_refused_by_everyone_if_it_is_another(run, other, exchange):
    message = re.escape(exchange(run, other))
    for use in (translate, info):
        with pytest.raises(RunError, match=message):
            use(run)
    (run / "model.npz").unlink()
    for use in (translate, info, resume):
        with pytest.raises(RunError, match=message):
            use(run)


@pytest.mark.parametrize("exchange", OF_THE_RECIPE + OF_THE_TEXT)
def test_what_makes_a_training_is_refused_when_it_goes_on(run, unfinished, other, exchange):
    before = translate(unfinished)
    message = re.escape(exchange(unfinished, other))
    with pytest.raises(RunError, match=message):
        resume(unfinished)
    assert translate(unfinished) == before  # which has nothing to do with it


@pytest.mark.parametrize("exchange", OF_THE_RECIPE)
def test_info_shows_no_recipe_that_is_not_that_of_the_weights(run, other, exchange):
    with pytest.raises(RunError, match=re.escape(exchange(run, other))):
        info(run)


@pytest.mark.parametrize("exchange", OF_THE_MODEL + OF_THE_RECIPE)
def test_a_run_that_is_over_is_not_said_to_be_if_it_is_another(run, other, exchange, capsys):
    message = exchange(run, other)
    assert main(["train", "--resume", str(run)]) == 1
    assert message in capsys.readouterr().err


def test_the_recipe_that_contradicts_the_model_is_refused(unfinished):
    edit(unfinished, "recipe", "model", num_heads=1)
    with pytest.raises(ValueError, match="num_heads is 2 there, and 1 here"):
        resume(unfinished)


def test_epochs_of_another_run_are_refused(run, other, capsys):
    shutil.copy(other / "epochs" / "epoch-0003.npz", run / "epochs")
    assert main(["evaluate", str(run), "--checkpoints"]) == 1
    assert "vocabulary.model has SHA-256 " in capsys.readouterr().err
    (run / "model.npz").unlink()
    with pytest.raises(RunError, match=r"says epoch-0003\.npz"):
        resume(run)


@pytest.mark.parametrize("folder", ["checkpoints", "epochs"])
def test_two_checkpoints_that_have_changed_names_are_refused(unfinished, folder):
    first, second = sorted((unfinished / folder).iterdir())[-2:]
    first.rename(aside := unfinished / "aside")
    second.rename(first)
    aside.rename(second)
    with pytest.raises(RunError, match=r"is of (step|epoch) \d+; give it its name back"):
        resume(unfinished)


def test_an_epoch_is_not_taken_for_the_chosen_parameters(run):
    shutil.copy(run / "epochs" / "epoch-0001.npz", run / "model.npz")
    with pytest.raises(RunError, match=r"model\.npz is damaged: it has no origin"):
        translate(run)


# What may change


def test_a_run_may_move_be_packed_and_be_saved_more_often(original, unfinished, tmp_path):
    """Where the text is, how it is packed, what is logged and when: the same model comes of it."""
    for path in (tmp_path / "corpus").iterdir():
        with gzip.open(f"{path}.gz", "wb") as file:
            file.write(path.read_bytes().replace(b"\n", b"\r\n"))
        path.unlink()
    edit(unfinished, "recipe", "data", **corpus_in(tmp_path / "corpus", suffix=".gz"))
    edit(unfinished, "recipe", "training", save_every=2)
    for path in sorted((unfinished / "checkpoints").iterdir())[-1:]:
        path.unlink()  # so that there is a step to make
    resume(unfinished)
    assert record(unfinished) == record(original)


# Folders of an older release


def made_old(run):
    """Take from all checkpoints what older releases did not write."""
    for path in run.rglob("*.npz"):
        arrays, state = load_checkpoint(path)
        del state["bound"]
        save_checkpoint(path, arrays, state)


@pytest.mark.filterwarnings("default")
def test_a_folder_of_an_older_release_is_used_with_one_warning(original, unfinished, capsys):
    made_old(unfinished)
    run = str(unfinished)
    for command in ["info", run], ["translate", run, "bao"], ["evaluate", run], [*TRAIN, run]:
        assert main(command) == 0
        errors = capsys.readouterr().err
        assert errors.count(f"{run} is of an older release, which did not note") == 1, command
    assert record(unfinished) == record(original)  # which notes it again


def test_a_folder_that_names_no_kind_of_model_is_that_of_a_transformer(original, unfinished):
    """As an older release has written it, which had no other."""
    sections = json.loads((unfinished / "config.json").read_text())
    for model in (sections["model"], sections["recipe"]["model"]):
        assert model.pop("kind") == "transformer"
    (unfinished / "config.json").write_text(json.dumps(sections))
    for path in unfinished.rglob("*.npz"):
        arrays, state = load_checkpoint(path)
        assert state["bound"]["model"].pop("kind") == "transformer"
        save_checkpoint(path, arrays, state)
    resume(unfinished)
    assert record(unfinished)[0] == record(original)[0]
    assert translate(unfinished) == translate(original)


def test_a_run_that_notes_no_file_of_a_learners_goes_on_without_one(original, unfinished):
    """As an older release has written it, which knew of none."""
    for path in unfinished.rglob("*.npz"):
        arrays, state = load_checkpoint(path)
        assert state["bound"].pop("own") == ""
        save_checkpoint(path, arrays, state)
    assert main([*TRAIN, str(unfinished)]) == 0
    assert record(unfinished)[0] == record(original)[0]


def test_the_vocabulary_of_another_size_is_refused_without_a_note_too(run):
    made_old(run)
    texts = (run.parent / "corpus" / "train.source").read_text().splitlines()
    save_vocabulary(run / "vocabulary.model", Vocabulary.train(texts, 30))
    with (
        pytest.warns(UserWarning, match="older release"),
        pytest.raises(RunError, match=r"has 30 pieces and the model of .* 36; take both"),
    ):
        translate(run)


def test_a_model_larger_than_its_checkpoint_is_refused_before_it_is_built(run, monkeypatch):
    made_old(run)
    edit(run, "model", num_encoder_layers=1000)
    monkeypatch.setattr("minitransformer.runs.parameters.new_model", None)
    with (
        pytest.warns(UserWarning, match="older release"),
        pytest.raises(RunError, match="holds 1,728 parameters, and the configuration is of"),
    ):
        translate(run)


@pytest.mark.parametrize("name", ["num_decoder_layers", "max_length"])
def test_sizes_of_no_model_that_anybody_trains_are_refused(run, name):
    edit(run, "model", **{name: 10**9})
    with pytest.raises(RunError, match=rf"config\.json is damaged: {name}=1000000000 must"):
        translate(run)


@pytest.mark.parametrize(
    "noted", [None, 3, {}, {"model": {}}, dict(model=[], vocabulary="", recipe={}, texts={})]
)
def test_a_note_of_the_wrong_kind_is_damage(run, noted):
    arrays, state = load_checkpoint(run / "model.npz")
    save_checkpoint(run / "model.npz", arrays, state | {"bound": noted})
    with pytest.raises(RunError, match=r"model\.npz, bound is damaged"):
        translate(run)


def test_every_checkpoint_notes_what_it_is_bound_to(original):
    states = {path.name: load_checkpoint(path)[1]["bound"] for path in original.rglob("*.npz")}
    assert len(states) >= 5
    noted = states["model.npz"]
    assert all(state == noted for state in states.values())
    assert noted["model"]["num_heads"] == 2
    assert noted["recipe"]["seed"] == 0
    assert not {"data_dir", "train_source", "save_every"} & noted["recipe"].keys()
    assert noted["texts"].keys() == {"training", "validation"}


def test_texts_are_told_apart_by_each_of_them_and_by_their_number():
    pairs = [("ein", "one"), ("zwei", "two")]
    others = [[("ein", "one"), ("zwei", "too")], [("eins", "one"), ("zwei", "two")], pairs[:1]]
    found = {TextTask.fingerprint(texts) for texts in [pairs, *others, [("one",)], [("two",)]]}
    assert len(found) == 6
    # As checkpoints of older releases have noted it.
    digest = hashlib.sha256(b"ein\none\nzwei\ntwo\n").hexdigest()
    assert TextTask.fingerprint(pairs) == f"2 pairs of SHA-256 {digest}"
