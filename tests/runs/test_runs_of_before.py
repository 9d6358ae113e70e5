"""Run folders that the release before this one wrote: they load, say the same, and go on.

``runs_of_before/runs.zip`` was made with release 0.1.0, before the package had rooms. In it is
``finished``, a translator trained to its end; ``cut_off``, the same training after Ctrl-C amid an
epoch; and ``tagger``, which began with what another run had learned and was killed in its last
epoch. What the old code said of them, and where it went on to, is in ``expected``. Of their files
they have those that are asked for here.
"""

import io
import json
import os
import shutil
from pathlib import Path

import pytest
from rounding import additions_of, assert_but_for_rounding

from minitransformer.commands.cli import main
from minitransformer.models.registry import new_model
from minitransformer.runs.checkpoint.file import load_checkpoint
from minitransformer.runs.run_folder import RunFolder

ARCHIVE = Path(__file__).parent / "runs_of_before" / "runs.zip"
TIMES = ("seconds", "tokens_per_second")


@pytest.fixture
def before(tmp_path, monkeypatch):
    """The folder with the runs, which name their text from there."""
    shutil.unpack_archive(ARCHIVE, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys, *arguments):
    """What the command prints, which ends well."""
    capsys.readouterr()
    assert main([*arguments]) == 0
    return capsys.readouterr().out


def logged(path):
    """The entries of a log, but for its speed."""
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    return [
        {name: value for name, value in entry.items() if name not in TIMES} for entry in entries
    ]


def assert_ended_as(run, model, log):
    """That a run has the parameters and the log of the old code, but for rounding.

    They are the same to the last bit where the BLAS has the kernels that it had then.
    """
    found, state = load_checkpoint(run.model)
    expected, then = load_checkpoint(model)
    assert state["origin"] == then["origin"]
    assert found.keys() == expected.keys()
    additions = additions_of(new_model(run.load_config()[0]))
    for name in expected:
        assert_but_for_rounding(found[name], expected[name], additions)
    for entry, old in zip(logged(run.log.path), logged(log), strict=True):
        assert entry.pop("kind") == old.pop("kind")
        assert entry == pytest.approx(old, rel=1e-5)


def test_it_translates_as_it_did(before, monkeypatch, capsys):
    texts = (before / "corpus" / "train.source").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(texts), "utf-8"))
    translations = said(capsys, "translate", "finished", "--beam-size", "1", "--device", "cpu")
    assert translations == (before / "expected" / "translations.txt").read_text()


def test_it_is_scored_as_it_was(before, capsys):
    greedy = ("--beam-size", "1", "--device", "cpu", "--json", "scores.json")
    said(capsys, "evaluate", "finished", *greedy)
    scores = json.loads((before / "scores.json").read_text())["scores"]["chosen"]
    expected = json.loads((before / "expected" / "scores.json").read_text())
    for each in (scores, expected):
        each.pop("signatures")  # which name the release of sacreBLEU
    assert scores == expected
    assert "0.4615" in said(capsys, "evaluate", "tagger", "--device", "cpu")


def test_info_tells_of_it(before, capsys):
    finished = said(capsys, "info", "finished").splitlines()
    assert "trains: 2,272 parameters" in finished
    assert "finished: yes; chosen: epoch 84, validation BLEU 98.0" in finished
    assert "steps: 323" in said(capsys, "info", "cut_off").splitlines()
    assert "began with: read, epoch 2" in said(capsys, "info", "tagger").splitlines()


@pytest.mark.parametrize(("name", "ended", "log"), [
    ("cut_off", "finished/model.npz", "finished/metrics.jsonl"),
    ("tagger", "expected/tagger.npz", "expected/tagger.jsonl"),
])  # fmt: skip
def test_it_goes_on_to_where_the_old_code_came(before, name, ended, log, capsys):
    said(capsys, "train", "--resume", name, "--device", "cpu")
    assert_ended_as(RunFolder(before / name), before / ended, before / log)


@pytest.mark.parametrize(("other", "file", "command"), [
    ("tagger/vocabulary.model", "cut_off/vocabulary.model", "translate cut_off ki"),
    ("expected/tagger.npz", "tagger/beginning.npz", "train --resume tagger --device cpu"),
])  # fmt: skip
@pytest.mark.usefixtures("before")
def test_an_exchanged_file_is_still_found_out(other, file, command, capsys):
    os.replace(other, file)
    assert main(command.split()) == 1
    assert f"{Path(file).name} has SHA-256 " in capsys.readouterr().err
