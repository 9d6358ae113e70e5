import json
import shlex
import shutil
from types import SimpleNamespace

import pytest
from colours import COLOURS
from run_files import edit_config, is_png
from tiny_run import trained
from tiny_tasks import classification
from tiny_translator import captions

import minitransformer
from minitransformer.commands.evaluate import TEST_SPLITS
from minitransformer.data.text.toy import SIZES
from minitransformer.inference.classifier import Classifier
from minitransformer.inference.translator import Translator
from minitransformer.runs.checkpoint.arrays import model_arrays
from minitransformer.runs.checkpoint.file import load_checkpoint, save_checkpoint
from minitransformer.tasks.classification import Classification

COLOURED = [[name] for name in COLOURS]
VALIDATION = [english for _, english in captions()[::9]]


def test_what_was_learned_by_heart_scores_100(run_folder, said):
    lines = said("evaluate", run_folder).out.splitlines()
    origin = Translator.load(run_folder).origin
    assert lines[0] == f"files, validation: {origin}, beam 4, alpha 0.6"
    assert lines[2].split(" | ")[1].strip() == "BLEU"
    assert lines[4] == "| chosen | 100.0 |           100.0 | 100.0 |         100.0 |         8 |"
    assert lines[6].startswith("- BLEU: `nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert len(lines) == 9


@pytest.fixture
def as_json(said, tmp_path):
    """A function: what ``evaluate`` prints, the scores that it writes as JSON, and what beside.

    That begins with the command and the version, as they are.
    """

    def run(folder, *arguments):
        arguments = [*arguments, "--device", "cpu", "--json", str(tmp_path / "scores.json")]
        out = said("evaluate", folder, *arguments).out
        content = json.loads((tmp_path / "scores.json").read_text())
        command = shlex.join(["minitransformer", "evaluate", str(folder), *arguments])
        assert content.pop("command") == command
        assert content.pop("version") == minitransformer.__version__
        return out, content.pop("scores"), content

    return run


def test_json_says_how_the_scores_were_made(run_folder, as_json):
    how = "--split", "train", "--beam-size", "1", "--alpha", "0.5"
    out, scores, content = as_json(run_folder, *how)
    assert "files, train: " in out
    assert content == {
        "corpus": "files",
        "split": "train",
        "seed": 1,
        "parameters": Translator.load(run_folder).origin,
        "beam_size": 1,
        "alpha": 0.5,
        "device": "cpu",
    }
    assert list(scores) == ["chosen"]
    assert scores["chosen"]["bleu_cased_13a"] == pytest.approx(100)
    assert scores["chosen"]["num_sentences"] == 72
    assert scores["chosen"]["signatures"].keys() == {"bleu_cased_13a", "bleu_lowercased", "chrf2"}


def test_beam_size_and_alpha_reach_the_search(run_folder, monkeypatch, said):
    calls = []

    def noted(self, texts, **options):
        calls.append(options)
        return [[SimpleNamespace(text=text)] for text in VALIDATION]

    monkeypatch.setattr(Translator, "translations", noted)
    out = said("evaluate", run_folder, "--beam-size", 1, "--alpha", 1.5).out
    assert calls == [dict(beam_size=1, alpha=1.5)]
    assert out.splitlines()[0].endswith(", greedy, alpha 1.5")


def test_output_holds_a_line_for_each_sentence(run_folder, tmp_path, said):
    file = tmp_path / "out.en"
    said("evaluate", run_folder, "--output", file)
    assert file.read_text() == "".join(f"{text}\n" for text in VALIDATION)


def test_checkpoints_have_a_row_each_and_are_really_loaded(run_copy, said):
    last, spoilt = max((run_copy / "epochs").iterdir()), run_copy / "epochs" / "epoch-0099.npz"
    translator = Translator.load(run_copy)
    translator.model.flat.data[:] = 0
    _, state = load_checkpoint(last)
    save_checkpoint(spoilt, model_arrays(translator.model), state | {"epoch": 99})
    out = said("evaluate", run_copy, "--checkpoints").out
    rows = [line.split("|") for line in out.splitlines()[4:-4]]
    scores = {row[1].strip(): float(row[2]) for row in rows}
    assert next(iter(scores)) == "chosen"
    assert scores["chosen"] == scores[last.stem] == 100
    assert scores["epoch-0099"] == 0


def test_every_corpus_has_a_split_to_test_on(run_copy, tmp_path, refused):
    """Shown by what is missing: Multi30k is not there, and the toy corpus takes long."""
    edit_config(run_copy, lambda sections: sections["recipe"].update(data={"corpus": "multi30k"}))
    error = refused("evaluate", run_copy, "--data-dir", tmp_path)
    problem = f"minitransformer: {tmp_path} lacks test_2016_flickr.de.gz and test_2016_flickr.en.gz"
    assert error.startswith(problem)
    assert TEST_SPLITS["toy"] in SIZES


# What was trained on pictures


def test_of_pictures_it_is_counted_which_class_is_taken_for_which(runs, said):
    lines = said("evaluate", runs["classify"], "--device", "cpu").out.splitlines()
    origin = Classifier.load(runs["classify"]).origin
    assert lines[0] == f"npz, validation, which chooses the epoch: {origin}"
    accuracy = next(line for line in lines if line.startswith("accuracy"))
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.split()[:1] in COLOURED}
    assert list(rows) == list(COLOURS)
    right = sum(float(recall) * int(count) for _, recall, _, count in rows.values())
    total = sum(int(count) for *_, count in rows.values())
    assert float(accuracy.split()[1]) == pytest.approx(right / total, abs=1e-4)


def test_json_says_how_pictures_were_scored(runs, as_json):
    out, scores, content = as_json(runs["classify"])
    assert content == {
        "corpus": "npz",
        "split": "validation",
        "seed": 0,
        "parameters": Classifier.load(runs["classify"]).origin,
        "ten_crops": False,
        "device": "cpu",
    }
    assert f"{scores['accuracy']:.4f}" in out


def test_ten_crops_are_scored_by_their_name(runs, as_json):
    run = runs["classify patches"]  # whose training cut pictures
    ten, _, content = as_json(run, "--ten-crops")
    assert content["ten_crops"] is True
    ten, once = (out.splitlines() for out in (ten, as_json(run)[0]))
    assert ten[0] == f"{once[0]}, ten crops"
    assert ten[2] != once[2]  # the NLL


def test_ten_crops_of_a_training_that_cut_none_are_refused_before_data_are_read(
    tmp_path, monkeypatch, refused
):
    trained(classification(tmp_path, crop_padding=0), tmp_path / "run")
    monkeypatch.setattr(Classification, "read", lambda *arguments: pytest.fail("read"))
    error = refused("evaluate", tmp_path / "run", "--ten-crops", status=2)
    assert "had no --crop-padding; leave out --ten-crops" in error


def test_a_map_of_what_is_taken_for_what_is_drawn(runs, tmp_path, said):
    file = tmp_path / "confusion.png"
    told = said("evaluate", runs["classify"], "--confusion", file).err
    assert told == f"minitransformer: confusion drawn: {file}\n"
    assert is_png(file)


def test_pictures_of_a_folder_are_scored_without_those_of_the_training(
    runs, files, tmp_path, monkeypatch, said, refused
):
    for name, colour in (("red", "red"), ("blue", "blue"), ("blue", "green")):
        (tmp_path / name).mkdir(exist_ok=True)
        shutil.copy(files[colour], tmp_path / name / f"{colour}.png")
    (tmp_path / "notes.txt").write_text("no picture")
    monkeypatch.setattr(Classification, "read", lambda *arguments: pytest.fail("read"))
    scores = tmp_path.parent / f"{tmp_path.name}.json"
    out, told = said("evaluate", runs["classify"], "--pictures", tmp_path, "--json", scores)
    assert json.loads(scores.read_text())["corpus"] is None  # they are none of its
    assert out.startswith(f"{tmp_path}: {Classifier.load(runs['classify']).origin}\n")
    assert (
        told == f"minitransformer: skipped: {tmp_path / 'notes.txt'} is in no folder of a class\n"
    )
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()[-3:]}
    assert {name: row[1] for name, row in rows.items()} == {
        "red": "1.0000",
        "green": "0.0000",
        "blue": "0.5000",
    }
    (tmp_path / "red").rename(tmp_path / "pink")
    told = refused("evaluate", runs["classify"], "--pictures", tmp_path)
    assert f"{tmp_path / 'pink'} is no class of the model" in told
