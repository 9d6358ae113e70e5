import json
from pathlib import Path

import numpy as np
import pytest
from colours import COLOURS

from minitransformer.commands.classify import AT_ONCE
from minitransformer.commands.cli import main
from minitransformer.core import twins
from minitransformer.core.libraries import library
from minitransformer.inference.classifier import Classifier

SOLUTION = Path(__file__).parents[2] / "lessons" / "solutions" / "own.py"


@pytest.fixture(params=["classify", "classify patches"])
def classifier(request, runs):
    return runs[request.param]


def rows(out):
    return [line.split("\t") for line in out.splitlines()]


def test_each_picture_has_its_likeliest_classes_and_their_probabilities(classifier, files, said):
    out = rows(said("classify", classifier, *files.values()).out)
    assert len(out) == len(files) * len(COLOURS)  # of five classes or fewer all are shown
    for i, (name, path) in enumerate(files.items()):
        of_picture = out[3 * i : 3 * i + 3]
        assert {row[0] for row in of_picture} == {str(path)}
        assert of_picture[0][1] == name
        assert {row[1] for row in of_picture} == set(COLOURS)
        probabilities = [float(row[2]) for row in of_picture]
        assert probabilities == sorted(probabilities, reverse=True)
        assert sum(probabilities) == pytest.approx(1, abs=0.002)


def test_an_option_may_stand_among_the_pictures(runs, files, said):
    one, other, _ = files.values()
    expected = said("classify", runs["classify"], one, other).out
    assert said("classify", runs["classify"], one, "--device", "cpu", other).out == expected
    assert said("classify", runs["classify"], "--device", "cpu", one, other).out == expected


def test_what_is_no_picture_is_named_and_the_others_are_answered(runs, files, used, tmp_path):
    red, *_ = files.values()
    text, cut = tmp_path / "text.png", tmp_path / "cut.png"
    text.write_text("no picture")
    cut.write_bytes(red.read_bytes()[:200])
    status, out, error = used("classify", text, red, cut, tmp_path / "none.png")
    assert status == 1
    assert out == used("classify", red)[1]
    lines = error.splitlines()
    for line, (path, says) in zip(lines, [
        (text, "is no PNG or JPEG"), (cut, "is damaged, or not whole"),
        (tmp_path / "none.png", "No such file"),
    ], strict=True):  # fmt: skip
        assert line.startswith(f"minitransformer: {path}")
        assert says in line


def test_of_a_folder_the_files_in_it_and_within_are_answered_by_name(runs, files, said, tmp_path):
    folder = tmp_path / "pictures"
    (folder / "more").mkdir(parents=True)
    for name, other in (("b", "red"), ("a", "green"), (".c", "blue"), ("more/a", "red")):
        (folder / f"{name}.png").write_bytes(files[other].read_bytes())
    (folder / "more/again").symlink_to(folder)
    (folder / "z.png").symlink_to(files["blue"])
    out = rows(said("classify", runs["classify"], folder, files["blue"], "--top", 1).out)
    assert [row[:2] for row in out] == [
        [str(folder / "a.png"), "green"],
        [str(folder / "b.png"), "red"],
        [str(folder / "more/a.png"), "red"],
        [str(folder / "z.png"), "blue"],
        [str(files["blue"]), "blue"],
    ]


def test_a_folder_without_pictures_is_told(used, tmp_path):
    (tmp_path / "empty").mkdir()
    status, out, error = used("classify", tmp_path / "empty")
    assert (status, out) == (1, "")
    assert error == f"minitransformer: there is no file in {tmp_path / 'empty'}\n"


def test_as_json_each_picture_is_a_line_with_its_probabilities_in_full(runs, files, said):
    given = runs["classify"], *files.values(), "--top", 2
    plain = rows(said("classify", *given).out)
    lines = [json.loads(line) for line in said("classify", *given, "--json").out.splitlines()]
    assert [line["file"] for line in lines] == [str(path) for path in files.values()]
    found = [(line["file"], *c.values()) for line in lines for c in line["classes"]]
    assert [[file, name, f"{p:.3f}"] for file, name, p in found] == plain
    assert len(plain) == 2 * len(files)
    assert any(p != round(p, 3) for *_, p in found)


@pytest.mark.parametrize("channels", [1, 3])
def test_files_of_which_none_is_a_picture_are_named_and_nothing_is_answered(
    channels, runs, used, tmp_path
):
    run, text = runs["classify"], tmp_path / "text.png"
    text.write_text("no picture")
    if channels == 1:
        drawn = np.random.default_rng(0).integers(0, 256, (20, 8, 8), np.uint8)
        np.savez(tmp_path / "grey.npz", pictures=drawn, labels=np.arange(20) % 2)
        run, data = tmp_path / "grey", ["--corpus=npz", f"--pictures={tmp_path / 'grey.npz'}"]
        assert main(["train", "shapes", *data, "--epochs=1", f"--run-folder={run}"]) == 0
    for paths in ([text], [text] * AT_ONCE + [tmp_path / "none.png"]):
        status, out, error = used("classify", *paths, run=run)
        assert (status, out) == (1, "")
        lines = error.splitlines()
        for path, line in zip(paths, lines, strict=True):
            assert line.startswith(f"minitransformer: {path}")


def test_a_picture_of_any_size_and_mode_is_brought_to_those_of_the_model(
    runs, files, said, tmp_path
):
    image = library("PIL.Image", "a file").open(files["red"])
    for name, other in (("large", image.resize((300, 200))), ("palette", image.convert("P"))):
        other.save(tmp_path / f"{name}.png")
        first, *_ = rows(said("classify", runs["classify"], tmp_path / f"{name}.png").out)
        assert first[1] == "red"


def test_more_pictures_than_are_in_memory_together_are_answered_in_order(runs, files, said):
    names = [*files] * (AT_ONCE // len(files) + 2)
    assert len(names) > AT_ONCE
    out = rows(said("classify", runs["classify"], *(files[name] for name in names)).out)
    assert [row[1] for row in out[:: len(COLOURS)]] == names


@pytest.mark.parametrize(("flags", "awake"), [([], True), (["--no-accelerate"], False)])
def test_twins_are_awake_unless_told_otherwise(flags, awake, runs, files, said, monkeypatch):
    seen, answer = [], Classifier.probabilities

    def noted(self, pictures):
        seen.append(twins._awake.get())
        return answer(self, pictures)

    monkeypatch.setattr(Classifier, "probabilities", noted)
    said("classify", runs["classify patches"], files["red"], *flags)
    assert seen == [awake]


def test_what_it_looked_at_is_drawn_of_each_picture(classifier, files, said, tmp_path, monkeypatch):
    monkeypatch.setattr("minitransformer.commands.classify.AT_ONCE", 1)  # pictures; numbers go on
    red, green, _ = files.values()
    shown = said("classify", classifier, red, "--looked-at", tmp_path / "looked.png")
    assert shown.err == f"minitransformer: drawn: {tmp_path / 'looked.png'}\n"
    said("classify", classifier, red, green, "--looked-at", tmp_path / "looked.svg")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"looked.png", "looked-1.svg", "looked-2.svg"}


def test_a_network_of_convolutions_looks_where_a_pixel_changes_what_it_says(runs, monkeypatch):
    """Shown by one that says the third class the more, the larger three numbers are."""
    trained = Classifier.load(runs["classify"], "cpu")
    weights = np.zeros((1, 16, 16, 3), np.float32)
    weights[0, 2, 3, 1], weights[0, 4, 5] = 2, (-3, 1, 0)
    seen = []

    def logits(x):
        seen.append(x)
        rest = np.zeros((len(x), 2), np.float32)
        said = np.concatenate([rest, 9 + (weights * x).sum(axis=(1, 2, 3))[:, None]], axis=1)
        return said, x[:, 2, 3, 1] > x[0, 2, 3, 1]

    def backward(dlogits, brighter):
        """Of half of the copies the gradient is another one, which the mean is to have in it."""
        slopes = dlogits[:, 2, None, None, None] * weights
        return np.where(brighter[:, None, None, None], 3 * slopes, slopes)

    monkeypatch.setattr(trained.model, "logits", logits)
    monkeypatch.setattr(trained.model, "backward", backward)
    picture = np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8)
    looked = trained.looked_at(picture)
    assert looked[4, 5] / looked[2, 3] == pytest.approx(1.5)
    assert 2 < looked[2, 3] < 6
    looked[2, 3] = looked[4, 5] = 0
    assert not looked.any()
    x, copies = seen
    assert (copies - x).std() == pytest.approx(0.1 * np.ptp(x), rel=0.05)


def test_looking_leaves_no_gradient_in_the_model(runs):
    trained = Classifier.load(runs["classify"], "cpu")
    picture = np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8)
    assert trained.looked_at(picture).any()
    for name, parameter in trained.model.named_parameters():
        assert not parameter.grad.any(), name


def test_a_vision_transformer_looks_where_its_attention_goes_through_all_layers(runs, monkeypatch):
    """Shown by two layers: the class token sees patch 5, and patch 5 sees patch 2."""
    trained = Classifier.load(runs["classify patches"], "cpu")
    weights = np.zeros((2, 1, 2, 17, 17), np.float32)
    weights[:, 0] = np.eye(17)
    weights[0, 0, :, 6], weights[1, 0, :, 0] = np.eye(17)[3], np.eye(17)[6]
    monkeypatch.setattr(trained.model, "attention", lambda cache: weights)
    looked = trained.looked_at(np.zeros((16, 16, 3), np.uint8))
    expected = np.zeros((16, 16))
    expected[4:8, 4:8], expected[0:4, 8:12] = 0.25, 0.25
    np.testing.assert_allclose(looked, expected)


def test_functions_of_a_learner_stand_in_where_the_layers_are_those_of_the_paper(runs, files, used):
    red, own = files["red"], ["--own", SOLUTION]
    patches = runs["classify patches"]
    status, out, error = used("classify", red, *own, run=patches)
    assert (status, out.splitlines()[0].split("\t")[1]) == (0, "red")
    assert f"functions are those of {SOLUTION}, not checked here" in error
    status, out, error = used("classify", red, *own)
    assert (status, out) == (1, "")
    assert "--own is for models of encoder and decoder layers like yours" in error
