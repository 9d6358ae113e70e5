import json
from pathlib import Path

import multi30k
import pytest
from report import page
from tiny_translator import write_recipe

from minitransformer.runs.checkpoint.file import load_checkpoint
from minitransformer.runs.run_folder import RunFolder


@pytest.fixture(scope="module")
def train(tmp_path_factory, files_like_multi30k):
    """A function that trains in a folder of its own and returns the status and the result."""
    folder = tmp_path_factory.mktemp("multi30k")
    recipe = write_recipe(folder)

    def train(name="result.json"):
        options = ["--json", folder / name, "--run-folder", folder / "run"]
        options += ["--split", "validation", recipe, "--data-dir", folder, "--epochs", "2"]
        return multi30k.main([str(option) for option in options]), folder

    return train


def test_the_result_says_how_it_was_made_and_what_it_scored(train):
    status, folder = train()
    assert status == 0
    text = (folder / "result.json").read_text()
    assert str(folder) not in text
    result = json.loads(text)
    assert result["command"].startswith("minitransformer train")
    assert result["command"].endswith("--data-dir DIR --epochs 2")
    assert result["epochs"] == 2
    last = RunFolder(folder / "run").log.entries()[-1]
    assert 0 < result["wall_seconds"] == last["seconds"]
    assert set(result["splits"]["validation"]) == {"greedy", "beam 5, alpha 1"}
    _, chosen = load_checkpoint(folder / "run" / "model.npz")
    greedy = result["splits"]["validation"]["greedy"]
    assert greedy["bleu_cased_13a"] == pytest.approx(chosen["validation_bleu"], abs=1e-9)


def test_a_run_of_a_release_that_knew_fewer_paths_is_scored(train):
    _, folder = train("older.json")
    run = RunFolder(folder / "run")
    sections = json.loads(run.config.read_text())
    del sections["recipe"]["data"]["data_dir"]
    run.config.write_text(json.dumps(sections))
    result = multi30k.scored(run, ["validation"], ["train"])
    assert result["splits"]["validation"]["greedy"]["bleu_cased_13a"] > 0


def test_a_result_is_never_scored_again(train):
    train("again.json")
    with pytest.raises(SystemExit, match="2"):
        train("again.json")


def test_the_run_of_one_command_is_not_scored_as_that_of_another(train, capsys):
    _, folder = train("first.json")
    options = [
        "--json",
        folder / "other.json",
        "--run-folder",
        folder / "run",
        "toy",
        "--seed",
        "7",
    ]
    with pytest.raises(SystemExit, match="2"):
        multi30k.main([str(option) for option in options])
    assert "run holds a run of another command" in capsys.readouterr().err
    assert not (folder / "other.json").exists()


def test_the_results_page_shows_it(train, tmp_path):
    _, folder = train("shown.json")
    Path(tmp_path / "multi30k.json").write_text((folder / "shown.json").read_text())
    assert "--data-dir DIR --epochs 2" in page(tmp_path)
