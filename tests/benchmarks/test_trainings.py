"""Scripts that train whole models: what they compare is trained alike, and scored once."""

import json
import math
import shutil
from itertools import combinations
from pathlib import Path

import _ablations
import fashion_mnist
import fine_tuning
import ladder
import multi30k
import numpy as np
import picture_claims
import pytest
import since_2017
import table_3
from _claims import by_share, courses, named
from _trained import rows_of, settings_of
from tiny_run import config_for, resize_toy_corpus
from tiny_workload import let_files_take_data_dir

from minitransformer.runs.checkpoint.file import load_checkpoint
from minitransformer.runs.run_folder import RunFolder
from minitransformer.tasks.task import run_at
from minitransformer.training.recipe import Recipe

# Models of about one size, trained alike


def test_the_trainings_of_the_ladder_are_equal_and_the_models_of_about_one_size():
    recipes = [Recipe.load(name) for name in ladder.RECIPES]
    assert all(recipe.data == recipes[0].data for recipe in recipes)
    epochs = {(recipe.training.epochs, recipe.training.batch_tokens) for recipe in recipes}
    assert len(epochs) == 1
    sizes = [config_for(recipe, 8000).num_parameters() for recipe in recipes]
    assert max(sizes) < 1.1 * min(sizes)


def test_what_is_pre_trained_has_the_sizes_of_what_is_tuned():
    recipes = [Recipe.load(name) for name in ("tagger", "classifier", "bert-toy")]
    first, *others = (
        {name: value for name, value in recipe.model.items() if name not in ("kind", "dropout")}
        for recipe in recipes
    )
    assert others == [first, first]
    assert len({recipe.data.vocabulary_size for recipe in recipes}) == 1


RECIPE_OF_ROW = {
    "fashion_mnist": lambda row: Recipe.load(row["recipe"]),
    "since_2017": lambda row: since_2017.recipe_of(row["row"]),
    "table_3": lambda row: table_3.CLAIM.recipe_of(row["row"]),
}
RECIPE_OF_ROW |= {
    f"picture-claims-{name}": lambda row, claim=claim: claim().recipe_of(row["row"])
    for name, claim in picture_claims.CLAIMS.items()
}


@pytest.mark.parametrize("name", RECIPE_OF_ROW)
def test_what_the_results_hold_is_known_by_its_settings_and_not_trained_again(name):
    with _ablations.known():
        rows = rows_of(fashion_mnist.RESULTS / f"{name}.json")
        assert rows
        for row in rows:
            assert settings_of(RECIPE_OF_ROW[name](row)) == row["settings"], row


def test_rows_of_since_2017_that_nobody_asks_for_stay(tmp_path, monkeypatch):
    results = {row["row"]: row for row in rows_of(since_2017.RESULTS / "since_2017.json")}
    file = tmp_path / "since_2017.json"
    shutil.copy(since_2017.RESULTS / "since_2017.json", file)
    new = {"parameters": 1, "time": 2.0, "memory": 3.0}
    monkeypatch.setattr(since_2017, "costs", lambda *_: new)
    options = ["--json", file, "--rows", "RMSNorm", "--lengths", 64, 128, 256]
    assert since_2017.main(list(map(str, options))) == 0
    expected = results | {name: results[name] | new for name in (since_2017.BASE, "RMSNorm")}
    assert rows_of(file) == list(expected.values())


def test_the_ladder_without_a_folder_has_the_data_of_a_recipe_that_names_none(monkeypatch):
    monkeypatch.setattr(ladder, "prepare", lambda job: job.recipe)
    recipe = ladder._trainer("multi30k-quick", Path("folder"), ladder._parsed([]))
    assert recipe.data == Recipe.load("multi30k-quick").data


def test_jobs_take_turns():
    order = []
    jobs = [lambda: order.append("a"), lambda: order.append("b")]
    assert len(ladder.in_turn(jobs, 3)) == 2
    assert order == list("ababab")


def test_sentences_are_scored_with_those_of_their_length():
    right, wrong = "a dog runs in the park", "nobody says a thing here"
    pairs = [("ein Hund läuft", right), ("so " * 9, right), ("so " * 11, right)]
    rows = multi30k.by_source_length(pairs, [right, wrong, right])
    assert [(row["words"], row["sentences"]) for row in rows] == [("1 to 8", 1), ("9 to 11", 2)]
    assert rows[0]["bleu_cased_13a"] == pytest.approx(100)
    assert rows[1]["bleu_cased_13a"] < 90


# The ladder, and the run of each rung


@pytest.mark.slow
def test_each_rung_has_its_own_scores_and_times(ran):
    _, _, result, _, folder, page = ran("ladder")
    recurrent, transformer = result["rows"]
    assert (recurrent["recipe"], transformer["recipe"]) == ("recurrent", "captions")
    assert recurrent["parameters"] != transformer["parameters"]
    for row in result["rows"]:
        run = json.loads((folder / f"{row['recipe']}-seed1.json").read_text())
        greedy = run["splits"]["validation"]["greedy"]["bleu_cased_13a"]
        assert (row["epochs"], row["bleu"]["greedy"]) == (run["epochs"], greedy)
        assert min(row["step_seconds"], *row["decode_seconds"].values()) > 0
        assert f"| {row['recipe']}-seed1 | validation | greedy | {greedy:.1f} |" in page


@pytest.fixture
def rung(ran, tmp_path, monkeypatch):
    """A folder with the Transformer's run, and a function that asks for its scores again."""
    let_files_take_data_dir(monkeypatch)
    made = ran("ladder").folder
    shutil.copytree(made / "runs", tmp_path / "runs")
    of_ladder = ["--split", "validation", "--split", "validation"]

    def score(file, *train):
        options = ["--json", tmp_path / file, "--run-folder", tmp_path / "runs/captions"]
        train = train or (made / "captions.toml", "--data-dir", made, "--seed", "1")
        return multi30k.main([str(option) for option in (*options, *of_ladder, *train)])

    return tmp_path, score


@pytest.mark.slow
def test_the_result_says_how_it_was_made_and_what_it_scored(ran):
    folder = ran("ladder").folder
    text = (folder / "captions-seed1.json").read_text()
    assert str(folder) not in text
    result = json.loads(text)
    assert result["command"].startswith("minitransformer train")
    assert result["command"].endswith("--data-dir DIR --seed 1")
    run = RunFolder(folder / "runs/captions")
    assert 0 < result["wall_seconds"] == run.log.entries()[-1]["seconds"]
    assert set(result["splits"]["validation"]) == {"greedy", "beam 5, alpha 1"}
    _, chosen = load_checkpoint(run.model)
    greedy = result["splits"]["validation"]["greedy"]
    assert greedy["bleu_cased_13a"] == pytest.approx(chosen["validation_bleu"], abs=1e-9)


@pytest.mark.slow
def test_a_run_is_scored_once_and_not_as_that_of_another_command(rung, capsys):
    folder, score = rung
    assert score("first.json") == 0
    with pytest.raises(SystemExit, match="2"):
        score("first.json")
    assert "is there already, and a run is scored once" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        score("other.json", "toy", "--seed", "7")
    assert "captions holds a run of another command" in capsys.readouterr().err
    assert not (folder / "other.json").exists()


@pytest.mark.slow
def test_a_run_of_a_release_that_knew_fewer_paths_is_scored(rung):
    run = RunFolder(rung[0] / "runs/captions")
    sections = json.loads(run.config.read_text())
    del sections["recipe"]["data"]["data_dir"]
    run.config.write_text(json.dumps(sections))
    result = multi30k.scored(run, ["validation"], ["train"])
    assert result["splits"]["validation"].keys() == multi30k.SEARCHES.keys()


# Fine-tuning


@pytest.mark.slow
def test_both_sides_are_scored_for_each_share_and_seed(ran):
    rows = ran("fine_tuning").result["rows"]
    asked = [(labels, share) for labels in ("tense", "case") for share in (0.1, 1.0)]
    assert [(row["labels"], row["share"]) for row in rows] == asked
    for row in rows:
        assert [len(row[x]) for x in ("scratch", "pretrained", "without_a_model")] == [2, 2, 2]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", fine_tuning.RECIPES)
def test_both_sides_are_trained_alike_but_for_where_they_begin(recipe, ran):
    runs = ran("fine_tuning").folder / "runs"
    sides = [runs / f"{recipe}-0.1-{side}-seed1" for side in ("scratch", "pretrained")]
    scratch, pretrained = (json.loads((side / "config.json").read_text()) for side in sides)
    assert scratch["recipe"] == pretrained["recipe"]
    assert scratch["model"] == pretrained["model"]
    assert [(side / "beginning.npz").exists() for side in sides] == [False, True]


@pytest.mark.slow
def test_without_a_model_a_word_has_the_label_that_it_mostly_has(ran, monkeypatch):
    corpus = {
        "train": [("die Frau .", "n n -"), ("die Tasche .", "a a -"), ("die Frau .", "n n -")],
        "validation": [("die .", "n -")],
        "test": [("die Tasche kauft .", "n a - -")],  # of kauft nothing is known: n
    }
    monkeypatch.setattr("minitransformer.tasks.tagging.labelled_toy_corpus", lambda _: corpus)
    monkeypatch.setattr(fine_tuning, "_corpus", lambda _: corpus)
    run = run_at(ran("fine_tuning").folder / "runs/tagger-1-scratch-seed1")
    assert fine_tuning.without_a_model(run) == 0.75


# Blocks since 2017


@pytest.mark.slow
def test_each_change_is_trained_scored_and_given_longer_contexts(ran):
    of = ran("since_2017")
    base, alibi, bare = of.result["rows"]
    for row in (base, alibi, bare):
        run = run_at(of.folder / "runs" / f"{row['row'].replace(' ', '-')}-2")
        perplexity = load_checkpoint(run.model)[1]["validation_perplexity"]
        assert math.exp(row["seeds"][1]["longer"][0]) == pytest.approx(perplexity, rel=1e-4)
    assert base["seeds"][0]["longer"][1:] == [None] * 3  # its positions are learned
    assert len({*alibi["seeds"][0]["longer"]}) == 4
    assert base["parameters"] == bare["parameters"] + 16 + 8
    memory = [of.result["tiles"][way]["exponents"]["memory"] for way in ("full", "tiles")]
    assert memory[0] > 1.7
    assert memory[1] < 1.3


# Table 3


@pytest.mark.slow
def test_each_variation_is_scored_and_those_of_the_labels_are_searched(ran):
    of = ran("table_3")
    for row in of.result["rows"]:
        for scores in row["seeds"]:
            with _ablations.known():
                run = run_at(of.folder / "runs" / f"{named(row['row'])}-{scores['seed']}")
            entries = [entry for entry in run.log.entries() if entry["kind"] == "validation"]
            assert scores["held_out"] == [entry["bleu"] for entry in entries]
            best = load_checkpoint(run.model)[1]["validation_bleu"]
            assert scores["BLEU"]["held out"] == pytest.approx(best, abs=1e-9)
            of_best = [entry for entry in entries if entry["bleu"] == pytest.approx(best, abs=1e-9)]
            expected = math.exp(of_best[0]["nll"])
            assert scores["perplexity"]["held out"] == pytest.approx(expected, rel=1e-4)
    searched = [row["row"] for row in of.result["rows"] if "searches" in row["seeds"][0]]
    assert searched == ["base", "(D) no label smoothing"]
    base = of.result["rows"][0]["seeds"][0]
    assert base["searches"]["greedy"] == pytest.approx(base["BLEU"]["held out"], abs=1e-9)
    assert "| BLEU, held out | base | (D) no label smoothing |" in of.table


# Pictures


@pytest.mark.slow
def test_each_seed_is_scored_on_what_validates_and_on_what_tests(ran):
    of = ran("fashion_mnist")
    (row,) = of.result["rows"]
    first, second = row["seeds"]
    assert [first["seed"], second["seed"]] == [1, 2]
    for seed in row["seeds"]:
        run = run_at(of.folder / "runs" / f"tiny-{seed['seed']}")
        chosen = load_checkpoint(run.model)[1]["validation_accuracy"]
        assert seed["validation"]["accuracy"] == pytest.approx(chosen, abs=1e-9)
        assert seed["test"]["nll"] not in (seed["validation"]["nll"], seed["ten_crops"]["nll"])
    mean = (first["test"]["accuracy"] + second["test"]["accuracy"]) / 2
    assert f"| {100 * mean:.2f} ±" in of.table


@pytest.mark.slow
def test_each_row_of_a_claim_has_its_course_its_errors_and_what_its_blocks_do(ran):
    of = ran("picture_claims")
    plain, residual = of.result["rows"]
    assert [len(row["seeds"]) for row in (plain, residual)] == [2, 2]
    for row in (plain, residual):
        for scores in row["seeds"]:
            run = run_at(of.folder / "runs/depth" / f"{row['row']}-{scores['seed']}")
            log = run.log.entries()
            steps = [entry["nll"] for entry in log if entry["kind"] == "train"]
            assert scores["course"] == pytest.approx(steps)  # fewer than parts
            best = load_checkpoint(run.model)[1]["validation_accuracy"]
            assert scores["wrong"]["held out"] == pytest.approx(1 - best, abs=1e-9)
            assert 0 <= scores["wrong"]["learned"] <= 1
            assert len(scores["responses"]) == len(scores["gradients"]) == 3
    assert plain["seeds"][0]["course"] != residual["seeds"][0]["course"]
    assert (of.folder / "plot.png").stat().st_size > 10_000


@pytest.fixture
def claimed(tmp_path, monkeypatch):
    """Runs a claim of toy translators with these rows; returns the table and the JSON's rows."""
    resize_toy_corpus(monkeypatch, {"train": 60, "validation": 12, "test": 12})
    sizes = dict(d_model=8, num_heads=2, d_ff=16, epochs=2, batch_tokens=400, vocabulary_size=150)

    def claimed(rows, *more):
        claim = picture_claims.Claim("toy", sizes, rows, picture_claims.of_translator, aim=1)
        monkeypatch.setitem(picture_claims.CLAIMS, "pairs", lambda: claim)
        file = tmp_path / "pairs.json"
        options = ["pairs", "--runs", str(tmp_path), "--json", str(file), "--seeds", "1", *more]
        assert picture_claims.main([*options, "--plot", str(tmp_path / "plot.png")]) == 0
        result = json.loads(file.read_text())
        return picture_claims.table(result), {row["row"]: row["seeds"] for row in result["rows"]}

    return claimed


@pytest.mark.slow
def test_rows_of_translators_have_the_perplexity_of_a_word_and_bleu(claimed, tmp_path):
    table, rows = claimed({"all": {}, "half": {"train_share": 0.5}})
    assert "| steps to 1 BLEU |" in table
    for name, (scores,) in rows.items():
        run = run_at(tmp_path / "pairs" / f"{name}-1")
        entries = [entry for entry in run.log.entries() if entry["kind"] == "validation"]
        assert scores["held_out"] == [entry["bleu"] for entry in entries]
        # A word has some tokens, so it is as likely as all of them.
        assert scores["perplexity"]["test"] > math.exp(max(entry["nll"] for entry in entries))
        assert 0 <= scores["BLEU"]["test"] <= 100
        assert f"| {scores['perplexity']['test']:.2f} | {scores['BLEU']['test']:.1f} |" in table


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # it overflows, with some kernels aloud
def test_a_training_that_explodes_is_a_row_and_ends_nothing(claimed):
    rows = {"far": dict(peak_learning_rate=1e4, warmup_steps=1, clip_norm=0.0, epochs=9)}
    table, found = claimed(rows)
    assert found["far"] == [{"seed": 1, "exploded": True}]
    assert "exploded" in table.splitlines()[2]
    _, found = claimed({"near": {}} | rows)
    assert found["near"][0]["steps"]
    assert found["far"] == [{"seed": 1, "exploded": True}]


@pytest.mark.slow
def test_rows_that_nobody_asks_for_stay_in_the_file(claimed):
    rows = {"all": {}, "half": {"train_share": 0.5}}
    _, both = claimed(rows)
    _, again = claimed(rows, "--rows", "half")
    assert again == both


def test_over_the_share_of_the_data_each_model_has_the_mean_of_its_seeds_and_their_deviation():
    scores = {"cnn, 10%": [0.3, 0.2], "cnn, 100%": [0.1, 0.1], "vit, 10%": [0.5]}
    rows = [
        {"row": row, "seeds": [{"wrong": {"test": share}} for share in shares]}
        for row, shares in scores.items()
    ]
    rows.append({"row": "vit, 30%", "seeds": [{"seed": 1, "exploded": True}]})
    (axes,) = by_share({"rows": rows}).axes
    drawn = {}
    for bars in axes.containers:
        line, _, (heights,) = bars
        ends = [segment[:, 1] for segment in heights.get_segments()]
        drawn[bars.get_label()] = line.get_xydata(), ends
    points, ends = drawn["cnn"]
    np.testing.assert_allclose(points, [[10, 25], [100, 10]])
    deviation = 10 / math.sqrt(2)
    np.testing.assert_allclose(ends, [[25 - deviation, 25 + deviation], [10, 10]])
    points, ends = drawn["vit"]
    np.testing.assert_allclose([*points, *ends], [[10, 50], [50, 50]])
    assert [*axes.get_xticks()] == [10, 100]
    assert axes.get_ylabel() == "test: % wrong"


@pytest.mark.parametrize(("aim", "of", "held_out", "reached"), [
    (0.2, {}, [[0.5, 0.2, 0.1, 0.3], [0.1, 0.5, 0.5, 0.5]], "30 | 1.5"),
    (0.2, {}, [[0.5, 0.2, 0.1, 0.3], [0.3, 0.3, 0.3, 0.3]], "– | –"),
    (0.15, {}, [[0.5, 1 - 0.85, 0.1, 0.3], [0.1, 0.5, 0.5, 0.5]], "30 | 1.5"),
    (15, {"BLEU": {"test": 9.0}}, [[9, 14, 15, 12], [16, 16, 16, 16]], "40 | 2.0"),
], ids=["errors", "of a seed never", "but for rounding", "BLEU"])  # fmt: skip
def test_a_table_says_when_an_aim_was_reached(aim, of, held_out, reached):
    common = dict(course=[1.0], parameters=9, steps=80, seconds=240)
    seeds = [{**common, **of, "held_out": each} for each in held_out]
    header, _, row = picture_claims.table(
        {"aim": aim, "rows": [{"row": "a", "seeds": seeds}]}
    ).splitlines()
    what = "15 BLEU" if of else f"{100 * aim:.0f}% wrong"
    assert f"| steps to {what} | minutes to {what} | minutes | seeds |" in header
    assert row.endswith(f"| {reached} | 4.0 | 2 |")


def test_a_row_has_the_means_of_the_seeds_that_did_not_explode_and_counts_the_others():
    whole = [
        dict(course=[1.0, loss], parameters=9, steps=80, seconds=240, wrong={"test": loss / 10})
        for loss in (2.0, 4.0)
    ]
    rows = [{"row": "far", "seeds": [{"exploded": True}] * 2}]
    rows.append({"row": "near", "seeds": [whole[0], {"exploded": True}, whole[1]]})
    *_, far, near = picture_claims.table({"rows": rows}).splitlines()
    assert far == "| far |  |  |  |  |  | exploded | 2 |"
    assert near.endswith("| 3.000 ± 1.414 | 30.00 ± 14.14 | 4.0 | 2, 1 exploded |")


def test_courses_of_several_seeds_lie_in_a_band_of_their_deviation():
    courses_of = {"two": [[4, 2], [2, 2]], "one": [[1, 1]]}
    rows = [
        {"row": row, "seeds": [{"course": each, "held_out": each} for each in seeds]}
        for row, seeds in courses_of.items()
    ]
    for axes in courses({"rows": rows}).axes:
        (band,) = axes.collections
        (outline,) = (path.vertices for path in band.get_paths())
        at_half = outline[outline[:, 0] == 0.5, 1]
        np.testing.assert_allclose([at_half.min(), at_half.max()], [3 - 2**0.5, 3 + 2**0.5])


def test_no_two_of_forty_courses_look_alike():
    rows = [{"row": str(i), "seeds": [{"course": [1, 2], "held_out": [1, 2]}]} for i in range(40)]
    for axes in courses({"rows": rows}).axes:
        assert len({(line.get_color(), line.get_linestyle()) for line in axes.lines}) == 40


@pytest.mark.parametrize("claim", picture_claims.CLAIMS)
def test_every_row_of_a_claim_is_a_recipe_of_its_own(claim):
    claim = picture_claims.CLAIMS[claim]()
    recipes = [claim.recipe_of(row).as_dict() for row in claim.rows]
    assert all(a != b for a, b in combinations(recipes, 2))


@pytest.mark.slow
def test_scores_of_the_same_recipe_are_kept_and_those_of_another_are_not(
    ran, tmp_path, monkeypatch
):
    of = ran("fashion_mnist")
    recipe, file = of.folder / "tiny.toml", tmp_path / "scores.json"
    shutil.copy(of.folder / "fashion_mnist.json", file)
    monkeypatch.setattr(fashion_mnist, "_run", None)  # nothing is left to train
    options = ["--recipes", str(recipe), "--json", str(file), "--runs", str(tmp_path)]
    assert fashion_mnist.main([*options, "--seeds", "2"]) == 0
    assert json.loads(file.read_text())["rows"] == of.result["rows"]
    content = file.read_text().replace('"recipe": "tiny"', '"recipe": "another one"')
    file.write_text(content)
    assert fashion_mnist.main([*options, "--seeds", "2"]) == 0  # which its settings tell
    rows = json.loads(file.read_text())["rows"]
    assert [row["recipe"] for row in rows] == ["another one", "tiny"]
    other = recipe.read_text(encoding="utf-8").replace("epochs = 2", "epochs = 3")
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(other, encoding="utf-8")
    options[1] = str(recipe)
    with pytest.raises(TypeError, match="not callable"):  # the run that is asked for
        fashion_mnist.main([*options, "--seeds", "2"])
