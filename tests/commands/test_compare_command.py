import json
import shutil
from types import SimpleNamespace

import pytest
from run_files import edit_config, is_png

from minitransformer.commands.cli import main
from minitransformer.inference.translator import Translator
from minitransformer.runs.run_folder import RunFolder
from minitransformer.training.comparison import grouped


@pytest.fixture
def like(run_folder, tmp_path):
    """A function that copies the run under a name, with other fields and validations.

    Its arguments are sections and fields of config.json, and (step, seconds, nll, bleu) an epoch.
    """

    def like(name, validations=(), **sections):
        folder = shutil.copytree(run_folder, tmp_path / name)
        for section, fields in sections.items():
            edit_config(folder, lambda content, s=section, f=fields: content["recipe"][s].update(f))
        if validations:
            write_log(folder, "bleu", validations)
        return folder

    return like


def write_log(folder, score, validations):
    """In place of the log of a run one of these: (step, seconds, nll, score) of each epoch."""
    entries = [{"kind": "train", "step": 1}]
    for epoch, values in enumerate(validations, start=1):
        entry = zip(("step", "seconds", "nll", score), values, strict=True)
        entries.append({"kind": "validation", "epoch": epoch, **dict(entry)})
    RunFolder(folder).log.write(entries)


@pytest.fixture
def begun(like):
    """A run of which no epoch is over."""
    folder = like("begun")
    write_log(folder, "bleu", ())
    return folder


@pytest.fixture
def three(like):
    """Two seeds of a recipe, and one of another."""
    return (
        like("a-1", [(9, 60, 2.0, 20.0), (18, 120, 1.5, 30.0), (27, 180, 1.75, 28.0)]),
        like("a-2", [(9, 30, 2.0, 34.0), (18, 60, 1.7, 33.0)], training={"seed": 2, "shards": 1}),
        like("b", [(40, 240, 3.0, 31.0)], model={"dropout": 0.5}, training={"seed": 3}),
    )


def table(lines, start):
    """The cells of a table whose first line is at ``start``, without the rule."""
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return [rows[0], *rows[2:]]


def test_seeds_of_one_recipe_are_one_row_of_their_best_epochs(three, said):
    lines = said("compare", *three).out.splitlines()
    assert lines[0] == "translation, the best epoch of each run"
    header, a, b = table(lines, 2)
    heads = "runs", "parameters", "steps", "BLEU", "NLL", "minutes", "minutes to 30.0"
    assert header == ["", *heads]
    size = f"{Translator.load(three[0]).model.num_parameters():,}"
    assert a == ["A", "2", size, "27 / 18", "32.0 ± 2.8", "1.750 ± 0.354", "2.0", "1.2"]
    assert b == ["B", "1", size, "40", "31.0", "3.000", "4.0", "4.0"]


def test_what_differs_is_told_and_chance_is_not(three, said):
    lines = said("compare", *three).out.splitlines()
    header, *rows = table(lines, 7)
    assert header == ["", "A", "B"]
    assert rows == [["dropout", "0.0", "0.5"]]
    assert lines[11:] == [
        f"A: {three[0]}, seed 1",
        f"A: {three[1]}, seed 2",
        f"B: {three[2]}, seed 3",
    ]


def test_groups_are_called_like_the_columns_of_a_spreadsheet():
    names = list(grouped(SimpleNamespace(fields=i) for i in range(703)))
    assert names[25:28] == ["Z", "AA", "AB"]
    assert names[701:] == ["ZZ", "AAA"]


def test_a_run_beside_itself_differs_in_nothing(run_folder, said, tmp_path):
    (tmp_path / "link").symlink_to(run_folder)
    lines = said("compare", run_folder, f"{run_folder}/", tmp_path / "link").out.splitlines()
    _, row = table(lines, 2)
    assert row[:2] == ["A", "1"]  # it is one run
    assert not any("differ" in line for line in lines)
    lines = said("compare", run_folder, shutil.copytree(run_folder, tmp_path / "copy")).out
    assert "they differ in nothing but chance: log_every, save_every, seed, shards\n" in lines


def test_a_run_named_twice_stands_where_it_was_named_first(three, said):
    lines = said("compare", three[2], *three).out.splitlines()
    assert [line.partition(",")[0] for line in lines[-3:]] == [
        f"A: {three[2]}",
        f"B: {three[0]}",
        f"B: {three[1]}",
    ]


def test_less_is_better_where_the_score_says_so(runs, tmp_path, said):
    folders = []
    for name, first, second in (("low", 9.0, 3.0), ("high", 5.0, 6.0)):
        folder = shutil.copytree(runs["generate"], tmp_path / name)
        write_log(folder, "perplexity", [(9, 60, 1.0, first), (18, 120, 1.0, second)])
        clip_norm = float(len(name))  # so that they are two groups
        edit_config(folder, lambda c, n=clip_norm: c["recipe"]["training"].update(clip_norm=n))
        folders.append(folder)
    _, low, high = table(said("compare", *folders).out.splitlines(), 2)
    assert (low[4], high[4]) == ("3.00", "5.00")
    assert (low[7], high[7]) == ("2.0", "1.0")  # until 5.00


def test_json_has_all_of_it(three, tmp_path, said):
    said("compare", *three, "--json", tmp_path / "all.json")
    content = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    assert (content["score"], content["reached"]) == ("bleu", 30.0)
    a, b = content["groups"]
    assert [run["seed"] for run in a["runs"]] == [1, 2]
    assert [run["best"]["bleu"] for run in (*a["runs"], *b["runs"])] == [30.0, 34.0, 31.0]
    assert len(a["runs"][0]["validations"]) == 3
    assert (a["fields"]["dropout"], b["fields"]["dropout"]) == (0.0, 0.5)


def test_an_option_may_stand_between_runs(three, tmp_path, said):
    first, *others = three
    expected = said("compare", *three).out
    assert said("compare", first, "--json", tmp_path / "all.json", *others).out == expected


def test_curves_are_drawn_and_a_run_under_way_is_told(three, tmp_path, said):
    (three[2] / "model.npz").unlink()
    printed = said("compare", "--picture", tmp_path / "curves.png", *three)
    assert is_png(tmp_path / "curves.png")
    assert printed.err == f"minitransformer: curves drawn: {tmp_path / 'curves.png'}\n"
    assert printed.out.splitlines()[-1] == f"B: {three[2]}, seed 3, not finished"


def test_translations_of_a_split_are_told_apart_by_a_bootstrap(like, said, tmp_path):
    good, same = like("good"), like("same", training={"seed": 2})
    arguments = ["--split", "validation", "--beam-size", "1", "--device", "cpu"]
    file = tmp_path / "all.json"
    lines = said("compare", good, same, *arguments, "--json", file).out.splitlines()
    start = lines.index(f"validation, greedy, alpha 0.6; p is beside {good}") + 2
    header, first, second = table(lines, start)
    assert header == ["", "BLEU", "95 %", "p"]
    origin = Translator.load(good).origin
    assert first == [f"{good}, {origin}", "100.0", "100.0 to 100.0", ""]
    assert second == [f"{same}, {origin}", "100.0", "100.0 to 100.0", "1.000"]
    assert lines[-1].startswith("- BLEU: `nrefs:1|bs:1000|seed:12345|case:mixed|")
    split = json.loads(file.read_text(encoding="utf-8"))["split"]
    expected = {"bleu": 100, "low": 100, "high": 100, "p": 1}
    assert split["scores"][str(same)] == pytest.approx(expected)


def test_a_run_without_an_epoch_is_left_out_and_alone_is_no_comparison(
    begun, run_folder, said, refused
):
    printed = said("compare", begun, run_folder)
    assert printed.err == f"minitransformer: {begun} has no validation, and is left out\n"
    assert printed.out == said("compare", run_folder).out
    told = "there is nothing to compare: a run has its first validation after an epoch"
    assert told in refused("compare", begun)


def test_other_sentences_are_no_comparison(like, tmp_path, capsys):
    other = like("other", data={"validation_target": str(tmp_path / "validation.en")})
    (tmp_path / "validation.en").write_text("a dog\n" * 8, encoding="utf-8")
    first = like("first")
    assert main(["compare", str(first), str(other), "--split", "validation"]) == 1
    assert f"{other} and {first} have other sentences in validation" in capsys.readouterr().err
