import io
from contextlib import nullcontext

import numpy as np
import pytest
from tiny_run import tiny_trainer, trained
from tiny_tasks import classification as recipe_for
from tiny_tasks import recipe_of_kind

from minitransformer.core.errors import InputError
from minitransformer.core.libraries import library
from minitransformer.data.errors import CorpusError
from minitransformer.data.images.npz import read_npz
from minitransformer.data.images.pictures import Pictures
from minitransformer.runs.checkpoint.file import CheckpointError
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks import classification
from minitransformer.tasks.classification import Classification
from minitransformer.tasks.task import run_at
from minitransformer.training.pretrained import Pretrained
from minitransformer.training.progress import Progress
from minitransformer.training.session import validated

PLAIN = dict(crop_padding=0)
CHANGES = [dict(crop_padding=2), dict(mirror=True), dict(scale=0.2), dict(colour=0.5)]


def read(recipe, out=None):
    return Classification.read(recipe, Progress(out or io.StringIO()))


def task_of(recipe, examples=None, validation=None):
    if examples is None:
        examples, validation = read(recipe)
    kept = Classification.keep(recipe, examples, validation)
    return Classification(recipe, kept, examples, validation, Progress(io.StringIO()))


def pictures_of(num_classes, count=None):
    """Pictures with noise on them, their labels in turns, named by letters."""
    count = count or num_classes
    pictures = np.random.default_rng(0).integers(0, 256, (count, 16, 16, 3), np.uint8)
    labels = np.arange(count) % num_classes
    return Pictures(pictures, labels, tuple("abcdefghij"[:num_classes]))


class AlwaysSays:
    """In place of a model: the same logits for every picture, or those of a function of it."""

    def __init__(self, logits):
        self.of = logits if callable(logits) else lambda picture: logits

    def inputs(self, batch):
        return (batch.pictures,)

    def logits(self, pictures):
        return np.array([self.of(picture) for picture in pictures], np.float32), None


# What is learned from


@pytest.mark.parametrize(("held_out", "number"), [(0.1, 9), (0.5, 45), (0.001, 3)])
def test_a_share_of_the_pictures_is_held_out_the_same_for_every_seed(held_out, number, tmp_path):
    found = []
    for seed in (0, 1):
        recipe = recipe_for(tmp_path, held_out=held_out, seed=seed)
        examples, validation = read(recipe)
        assert (len(examples), len(validation)) == (90 - number, number)
        found.append([some.pictures.tobytes() for some in (examples, validation)])
    assert found[0] == found[1]
    both = [row.tobytes() for some in (examples, validation) for row in some.pictures]
    assert sorted(both) == sorted(row.tobytes() for row in read_npz(recipe.data.pictures).pictures)


def test_of_each_class_as_large_a_share_is_held_out_and_one_picture_of_a_small_one(tmp_path):
    recipe = recipe_for(tmp_path, held_out=0.1)
    labels = np.repeat([0, 1, 2, 3], [57, 20, 2, 1])
    pictures = np.random.default_rng(0).integers(0, 256, (80, 16, 16, 3), np.uint8)
    np.savez(recipe.data.pictures, pictures=pictures, labels=labels, classes=[*"abcde"])
    examples, validation = read(recipe)
    assert np.bincount(validation.labels, minlength=5).tolist() == [6, 2, 1, 0, 0]
    assert np.bincount(examples.labels, minlength=5).tolist() == [51, 18, 1, 1, 0]


def test_pictures_of_which_none_can_be_held_out_are_refused(tmp_path):
    recipe = recipe_for(tmp_path)
    np.savez(recipe.data.pictures, pictures=np.zeros((2, 16, 16), np.uint8), labels=[0, 1])
    with pytest.raises(CorpusError, match="there are 2 pictures of 2 classes; give more of both"):
        read(recipe)


def test_an_epoch_has_each_picture_once_with_its_label(tmp_path):
    task = task_of(recipe_for(tmp_path, **PLAIN))
    batches = list(task.batches(0))
    assert [len(batch.labels) for batch in batches] == [20, 20, 20, 20, 1]
    pictures, labels = (
        np.concatenate([getattr(b, n) for b in batches]) for n in ("pictures", "labels")
    )
    expected = task.statistics.normalized(task.examples.pictures)
    there = {picture.tobytes(): label for picture, label in zip(pictures, labels, strict=True)}
    wanted = zip(expected, task.examples.labels, strict=True)
    assert there == {picture.tobytes(): label for picture, label in wanted}


def test_what_a_model_is_given_has_mean_0_and_deviation_1_in_each_channel(tmp_path):
    task = task_of(recipe_for(tmp_path, **PLAIN))
    pictures = np.concatenate([batch.pictures for batch in task.batches(0)])
    assert pictures.dtype == np.float32
    np.testing.assert_allclose(pictures.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(pictures.std(axis=(0, 1, 2)), 1, rtol=1e-5)


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_pictures_to_train_on_are_changed_and_those_that_validate_are_not(changes, tmp_path):
    plain, task = (task_of(recipe_for(tmp_path, **PLAIN | c)) for c in ({}, changes))
    first, second = (np.concatenate([b.pictures for b in t.batches(0)]) for t in (plain, task))
    changed = (first != second).any(axis=(1, 2, 3))
    assert changed.mean() > 0.3  # of mirror only about a half
    _, validation = read(recipe_for(tmp_path))
    for batch, start in zip(task.validation_batches, range(0, 9, 20), strict=True):
        some = validation[start : start + 20]
        np.testing.assert_array_equal(batch.pictures, task.statistics.normalized(some.pictures))
        np.testing.assert_array_equal(batch.labels, some.labels)


def test_pictures_that_validate_stay_bytes_until_they_are_asked_for(tmp_path):
    (batch,) = task_of(recipe_for(tmp_path)).validation_batches
    kept = [x for x in vars(batch).values() if isinstance(x, np.ndarray) and x.ndim > 1]
    assert [x.dtype for x in kept] == [np.uint8]


def test_a_shard_has_pictures_enough_for_its_statistics_to_say_something(tmp_path, monkeypatch):
    for cores, batch, shards in ((2, 128, 2), (16, 128, 4), (16, 31, 1)):
        monkeypatch.setattr("minitransformer.parallel.alone.available_cores", lambda n=cores: n)
        recipe = recipe_for(tmp_path, shards=0, batch_tokens=batch)
        trainer = tiny_trainer(recipe, tmp_path / f"{cores}-{batch}")
        assert trainer.config.shards == shards


def test_a_folder_of_pictures_is_learned_from_and_what_is_none_is_told(tmp_path):
    image = library("PIL.Image", "a file")
    for name in ("cats", "dogs"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(3):
            image.new("RGB", (40, 30), (80 * i, 0, 0)).save(tmp_path / f"photos/{name}/{i}.png")
    (tmp_path / "photos/cats/notes.txt").write_text("no picture")
    fields = dict(corpus="folder", pictures=str(tmp_path / "photos"), picture_size=16)
    recipe = recipe_for(tmp_path, **fields, held_out=0.5)
    out = io.StringIO()
    examples, validation = read(recipe, out)
    assert examples.pictures.shape == (2, 16, 16, 3)
    assert validation.pictures.shape == (4, 16, 16, 3)
    assert examples.classes == ("cats", "dogs")
    assert out.getvalue().startswith(f"skipped: {tmp_path}/photos/cats/notes.txt is no PNG")
    for path in (tmp_path / "photos/dogs").iterdir():
        path.unlink()
    with pytest.raises(CorpusError, match="there are 3 pictures of 1 classes; give more of both"):
        read(recipe)


def test_what_is_trained_on_is_told_from_anything_else():
    def words(pictures=None, labels=None, classes=("a", "b")):
        same = np.zeros((2, 16, 16, 1), np.uint8), np.array([0, 1]), classes
        given = pictures, labels, None
        return Classification.fingerprint(
            Pictures(*(b if a is None else a for a, b in zip(given, same, strict=True)))
        )

    other = np.zeros((2, 16, 16, 1), np.uint8)
    other[1, 3, 4] = 1
    turned = np.zeros((2, 8, 32, 1), np.uint8)
    found = [
        words(),
        words(other),
        words(turned),
        words(labels=np.array([0, 0])),
        words(classes="ac"),
    ]
    assert len(set(found)) == len(found)
    assert words() == words()
    assert words().startswith("2 pictures of SHA-256 ")


# How it is judged


def test_accuracy_top_5_and_nll_of_a_model_that_says_the_same_of_everything_are_known(tmp_path):
    ten = pictures_of(10, 30)
    task = task_of(recipe_for(tmp_path), ten, ten)
    logits = np.arange(10) / 10  # "j" is the likeliest, and "f" the fifth
    scores = task.validate(AlwaysSays(logits))
    assert scores["accuracy"] == 0.1
    assert scores["top_5"] == 0.5
    assert scores["nll"] == pytest.approx(np.log(np.exp(logits).sum()) - logits.mean())
    _, *rows = task.details()
    of_j = dict(j="0.1000 1.0000 0.1818")
    assert [row.split() for row in rows] == [
        [name, *of_j.get(name, "0.0000 0.0000 0.0000").split(), "3"] for name in ten.classes
    ]
    assert task.counts[:, 9].tolist() == [3] * 10


def test_of_classes_that_are_as_likely_the_first_ones_count(tmp_path):
    """For both scores: a model that knows nothing has five of ten, not all."""
    ten = pictures_of(10)
    scores = task_of(recipe_for(tmp_path), ten, ten).validate(AlwaysSays(np.zeros(10)))
    assert (scores["accuracy"], scores["top_5"]) == (0.1, 0.5)


@pytest.mark.parametrize(("num_classes", "told"), [(2, False), (5, False), (6, True)])
def test_top_5_is_told_where_it_says_something(num_classes, told, tmp_path):
    some = pictures_of(num_classes)
    scores = task_of(recipe_for(tmp_path), some, some).validate(AlwaysSays(np.zeros(num_classes)))
    assert ("top_5" in scores) == told


def test_of_ten_crops_the_mean_of_the_probabilities_counts(tmp_path):
    """Shown by a light pixel in a corner, which three of five crops have cut off."""
    pictures = np.zeros((2, 16, 16, 1), np.uint8)
    pictures[0, 0, 0] = 255
    two = Pictures(pictures, np.array([0, 1]), ("light", "dark"))
    task = task_of(recipe_for(tmp_path, crop_padding=2), two, two)
    object.__setattr__(task.statistics, "mean", np.float32(0))  # what was 0 before stays it

    def sees(picture):
        return np.log([0.9, 0.1] if picture.any() else [0.1, 0.9])

    once, ten = (task.validate(AlwaysSays(sees), **how) for how in ({}, dict(ten_crops=True)))
    assert (once["accuracy"], ten["accuracy"]) == (1, 0.5)
    assert once["nll"] == pytest.approx(-np.log(0.9))
    light = (2 * 0.9 + 3 * 0.1) / 5
    assert ten["nll"] == pytest.approx(-(np.log(light) + np.log(0.9)) / 2)


def test_ten_crops_are_refused_where_a_training_had_none(tmp_path):
    task = task_of(recipe_for(tmp_path, **PLAIN))
    with pytest.raises(InputError, match="ten crops are for a training with crop_padding"):
        task.validate(AlwaysSays(np.zeros(3)), ten_crops=True)


def test_a_corpus_has_the_splits_it_has_and_no_other(tmp_path):
    shapes = recipe_for(tmp_path, corpus="shapes", pictures="")
    assert len(Classification.read_split(shapes, "test")) == 1000
    for recipe, split in (
        (shapes, "validation"),
        (recipe_for(tmp_path), "validation"),
        (shapes, "train"),
        (recipe_for(tmp_path), "test"),
    ):
        with pytest.raises(InputError, match=f"has no split '{split}' to test with"):
            Classification.read_split(recipe, split)


def test_what_a_run_can_be_validated_on_is_said_before_data_are_read(tmp_path, monkeypatch):
    recipe = recipe_for(tmp_path)
    trained(recipe, tmp_path / "run")
    run = run_at(tmp_path / "run")
    monkeypatch.setattr(Classification, "read", lambda *arguments: pytest.fail("read"))
    with pytest.raises(InputError, match=r"split='test'; choose 'validation'$"):
        validated(run, recipe, "cpu", split="test")
    shapes = recipe.with_values(dict(corpus="shapes", pictures=""))
    with pytest.raises(InputError, match=r"split='train'; choose 'validation' or 'test'$"):
        validated(run, shapes, "cpu", split="train")


def test_the_pictures_to_test_with_are_read_from_where_the_others_are(tmp_path, monkeypatch):
    asked = []
    loader = lambda *arguments: asked.append(arguments) or pictures_of(10)  # noqa: E731
    monkeypatch.setitem(classification.DOWNLOADED, "mnist", loader)
    recipe = recipe_for(tmp_path, corpus="mnist", pictures="", data_dir="there")
    read(recipe)
    Classification.read_split(recipe, "test")
    assert asked == [("train", "there"), ("test", "there")]


# What another run has learned


def test_a_training_begins_with_another_one_and_has_classes_of_its_own(tmp_path):
    trained(recipe_for(tmp_path / "first"), tmp_path / "one")
    recipe = recipe_for(tmp_path / "second")
    rng = np.random.default_rng(5)
    pictures = rng.integers(0, 256, (40, 16, 16, 3), np.uint8)
    np.savez(recipe.data.pictures, pictures=pictures, labels=np.arange(40) % 4, classes=[*"wxyz"])
    pretrained = Pretrained.of_run(tmp_path / "one")
    recipe = pretrained.fitted(recipe, {})
    trainer = tiny_trainer(recipe, tmp_path / "two", pretrained=pretrained)
    arrays, _ = RunFolder(tmp_path / "one").load_parameters()
    model = trainer.model
    for kind, named in (
        ("parameters", model.named_parameters()),
        ("buffers", model.named_buffers()),
    ):
        of_body = {name: x.data for name, x in named if not name.startswith("head.")}
        assert of_body
        for name, data in of_body.items():
            np.testing.assert_array_equal(data, arrays[f"{kind}/{name}"])
    assert trainer.task.classes == ("w", "x", "y", "z")
    assert model.config.num_classes == 4


@pytest.mark.parametrize(("kind", "shape", "said"), [
    ("vision-transformer", (24, 24, 3),
     r"are 16 × 16 × 3, and these 24 × 24 × 3; bring them to 16 × 16, .*-size 16$"),
    ("small-network", (16, 16), "are 16 × 16 × 3, and these 16 × 16 × 1; give them colours$"),
    ("small-network", (24, 24, 3), None),
])  # fmt: skip
def test_convolutions_go_on_with_pictures_of_another_size_and_nothing_else_does(
    kind, shape, said, tmp_path
):
    """Patches do not, nor what has learned colours with grey pictures."""
    trained(recipe_of_kind(kind, tmp_path / "first"), tmp_path / "one")
    recipe = recipe_of_kind(kind, tmp_path / "second")
    np.savez(recipe.data.pictures, pictures=np.zeros((20, *shape), np.uint8), labels=[0, 1] * 10)
    pretrained = Pretrained.of_run(tmp_path / "one")
    refused = pytest.raises(CheckpointError, match=f"one, .*: its pictures {said}")
    with refused if said else nullcontext():
        trained(recipe, tmp_path / "two", pretrained)
