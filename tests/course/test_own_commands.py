"""``train --own``, and what becomes of such a run; ``check own``."""

import json
import re
import shlex
import signal
from pathlib import Path

import pytest
from attempts import attempts
from endless import ENDLESS, STOPPED
from exercise_files import written
from own_files import PART_OF, RUNNING, STUBS, TEXT, command, losses, solution_of_only, text_with
from tiny_translator import write_recipe

from minitransformer.course.own import training as own_training
from minitransformer.gradcheck import CheckError
from minitransformer.runs.run_folder import RunFolder
from minitransformer.training.session import prepare
from minitransformer.training.trainer import Trainer

SLIP = dict(layer_norm_backward={" - through_mean": ""})
NOT_WRITTEN = {"alive = cache\n    return dy * alive": "raise NotImplementedError"}
RUN = Path("runs/own")
SMALL = ("--d-model", 8, "--d-ff", 8, "--batch-tokens", 500, "--epochs", 1)  # five steps


def train(*arguments):
    return command("train", *arguments)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a recipe, a file that leaves a mark where it is run, and its run.

    And a run of that recipe on the package's functions.
    """
    folder = tmp_path_factory.mktemp("own")
    mark = "\nimport pathlib\npathlib.Path(__file__).with_name('mark').touch()\n"
    mine = written(folder / "mine.py", TEXT + mark)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        recipe = write_recipe(folder)
        assert train(recipe, "--own", mine, *SMALL) == 0
        assert train(recipe, *SMALL, "--no-accelerate") == 0
    return folder


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    """A TOML file in the current folder, which is empty but for it and its corpus."""
    monkeypatch.chdir(tmp_path)
    return str(write_recipe(tmp_path))


@pytest.fixture
def relu(tmp_path):
    """A file with no more than relu in it."""
    return solution_of_only(tmp_path / "relu.py", "relu")


@pytest.fixture
def wrong(tmp_path):
    """A file with a wrong layer_norm."""
    return solution_of_only(tmp_path / "wrong.py", "layer_norm", text=text_with(**SLIP))


def test_a_training_on_ones_own_keeps_the_file_and_ends_with_a_certificate(run, trained):
    assert run.own.read_bytes() == (trained / "mine.py").read_bytes()
    text = run.certificate.read_text()
    assert "23 of 23 parts are yours.\nOf the package's functions that yours can " in text
    assert "replace, none ran.\n" in text.replace("\n| function", "| function")
    ran = {name: "no" if name == "noam" else "yes" for name in RUNNING}  # linear_decay does
    assert all(f"| `{name}` | yours | {ran[name]} |" in text for name in RUNNING)
    assert text.count("\n- beam search: ") == 3


def test_its_first_losses_are_those_of_the_packages_readable_functions(run):
    mine, packages = losses(run.log), losses(run.package_log)
    assert packages == losses(RunFolder("runs/captions").log)
    assert mine == pytest.approx(packages, rel=1e-6)
    stated = run.certificate.read_text()
    difference = max(abs(mine[step] / packages[step] - 1) for step in mine)
    assert f"by {difference:.1e} of their size at most" in stated
    last = max(mine)
    assert (
        f"step {last} was {mine[last]:.4f}, and with the package's {packages[last]:.4f}" in stated
    )


def test_the_certificate_has_the_score_of_greedy_search(run):
    stated = run.certificate.read_text()
    assert command("evaluate", run.path, "--beam-size", 1, "--json", "scores.json") == 0
    scores = json.loads(Path("scores.json").read_text())["scores"]["chosen"]
    assert f"greedy: {scores['exact_match']:.1f} % of 8 sentences" in stated
    assert f"BLEU {scores['bleu_cased_13a']:.1f}\n" in stated


def test_what_to_try_next_works(run, capsys):
    said = run.resume_command(), f"minitransformer translate {RUN} --own {RUN}/own.py"
    assert said[0] == "minitransformer train --resume runs/own --own runs/own/own.py"
    assert command(*shlex.split(said[0])[1:]) == 0
    assert "trained to its end" in capsys.readouterr().err
    assert command(*shlex.split(said[1])[1:], "ein Hund") == 0
    mine = capsys.readouterr().out
    assert command("translate", RUN, "ein Hund") == 0
    assert capsys.readouterr().out == mine
    assert command("evaluate", RUN, "--own", "mine.py", "--beam-size", 1) == 0


def test_nothing_of_the_file_runs_in_a_process_that_did_not_ask_for_it(run, capsys):
    mark = run.path / "mark"
    for arguments in (
        ("evaluate", RUN, "--beam-size", 1),
        ("info", RUN),
        ("plot", RUN),
        ("translate", RUN, "ein Hund"),
    ):
        assert command(*arguments) == 0
    assert not mark.exists()
    assert "with --own FILE those of a file, such as runs/own/own.py" in capsys.readouterr().err
    assert command("translate", RUN, "ein Hund", "--own", run.own) == 0
    assert mark.exists()


def test_a_run_goes_on_with_the_file_that_it_was_begun_with_alone(run, capsys):
    def refused(*own):
        assert train("--resume", RUN, *own) == 1
        return capsys.readouterr().err

    run.model.unlink()
    assert f"code only runs when you say so; go on: {run.resume_command()}" in refused()
    mine = Path("mine.py")
    mine.write_text(mine.read_text() + "# changed\n")
    assert f"mine.py differs from it; go on: {run.resume_command()}" in refused("--own", mine)
    run.own.write_bytes(mine.read_bytes())
    assert "own.py has SHA-256" in refused("--own", mine)
    run.own.unlink()
    assert "own.py is missing, and the run was trained with one" in refused()
    assert "or put the file back" in refused("--own", mine)


def test_a_run_on_the_packages_functions_does_not_go_on_with_others(run, relu, capsys):
    assert train("--resume", "runs/captions", "--own", relu) == 1
    assert "it is trained on the package's functions" in capsys.readouterr().err


def test_a_training_cut_off_goes_on_to_the_same_end(run, monkeypatch, capsys):
    take_step = Trainer.take_step

    def interrupted(trainer, *arguments):
        take_step(trainer, *arguments)
        if trainer.step == 3:
            raise KeyboardInterrupt

    other = "--run-folder", "cut off", "--save-every", 1
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "take_step", interrupted)
        assert train("captions.toml", "--own", "mine.py", *SMALL, *other) == 130
    go_on = capsys.readouterr().err.splitlines()[-1].partition(": ")[2]
    assert go_on.endswith("--own 'cut off/own.py'")
    assert command(*shlex.split(go_on)[1:]) == 0
    assert losses(RunFolder("cut off").log) == losses(run.log)


def test_started_over_it_takes_what_the_file_holds_now_and_keeps_what_it_was_begun_with(run, wrong):
    """Be it wrong."""
    before, logged = run.own.read_bytes(), losses(run.log)
    assert train("--resume", RUN, "--own", wrong, "--start-over", "--anyway") == 0
    assert run.own.read_bytes() == wrong.read_bytes()
    assert "--anyway" in run.resume_command()
    kept = RunFolder(RUN / "before-1")
    assert (kept.own.read_bytes(), losses(kept.log)) == (before, logged)
    assert kept.package_log.path.exists()
    assert kept.certificate.exists()


def test_the_end_of_a_training_may_be_interrupted_and_made_up_for(run, capsys, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    before = run.certificate.read_text()
    for path in (run.certificate, *run.pictures):
        path.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(own_training, "certify", interrupt)
        assert train("--resume", RUN, "--own", "mine.py") == 130
    said = capsys.readouterr().err
    assert f"the training is whole; its certificate: {run.resume_command()}\n" in said
    assert (run.path / "loss.png").exists()
    assert command(*shlex.split(run.resume_command())[1:]) == 0
    assert run.certificate.read_text() == before
    assert capsys.readouterr().out == before


def test_a_few_steps_are_compared_and_an_epoch_of_the_readable_functions_is_kept(run, monkeypatch):
    accelerated = []

    def prepared(job):
        accelerated.append(job.recipe.training.accelerate)
        return prepare(job)

    monkeypatch.setattr(own_training, "prepare", prepared)
    monkeypatch.setattr(own_training, "FIRST", 2)
    run.certificate.unlink()
    assert train("--resume", RUN, "--own", "mine.py") == 0
    assert "the losses of the first 2 steps differ" in run.certificate.read_text()
    assert losses(run.package_log).keys() == losses(run.log).keys()
    assert accelerated == [True, False]


REFUSED = [  # options, what is written, what is said
    ((), "wrong", r"wrong in .*wrong.py: layer_norm. Mend it, or see what comes of it: --anyway\n"),
    ((), "wrong", r"WRONG  layer_norm .*\n.*mean"),
    ((), "stubs", "nothing is written in"),
    (("--kind", "restricted"), "relu", "--own is for models of encoder and decoder layers like "),
]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="nothing stops a loop here")
def test_a_file_that_never_ends_is_not_waited_for(tmp_path):
    with pytest.raises(CheckError, match=re.escape(STOPPED)):
        own_training.checked(written(tmp_path / "own.py", ENDLESS), False, print)


@pytest.mark.parametrize(("options", "file", "says"), REFUSED)
def test_what_cannot_be_trained_is_refused_before_anything_is_made(
    recipe, wrong, relu, capsys, options, file, says
):
    """The learner's layers know no window: they would look at what is still to be said."""
    files = {"wrong": wrong, "relu": relu, "stubs": STUBS}
    assert train(recipe, "--own", files[file], *SMALL, *options) == 1
    assert re.search(says, capsys.readouterr().err)
    assert not Path("runs").exists()


def test_anyway_it_trains_and_goes_on_and_the_loss_tells(recipe, wrong, capsys, monkeypatch):
    save = Trainer.save

    def interrupted(trainer):
        save(trainer)
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "save", interrupted)
        assert train(recipe, "--own", wrong, "--anyway", *SMALL) == 130
    said = capsys.readouterr().err
    assert "wrong, and used anyway: layer_norm\n" in said
    _, go_on = said.splitlines()[-1].split("; go on: ")
    assert command(*shlex.split(go_on)[1:]) == 0
    said = capsys.readouterr().out
    assert "| `layer_norm` | yours, wrong | yes |" in said
    assert float(re.search(r"by (\S+) of their size at most", said)[1]) > 1e-4


def test_anyway_goes_with_ones_own(recipe):
    with pytest.raises(SystemExit, match="2"):
        train(recipe, "--anyway")


@pytest.mark.parametrize(("function", "slip", "says"), attempts("STOPS", "own"))
def test_anyway_it_stops_with_a_clear_error_where_it_cannot_go_on(
    recipe, capsys, function, slip, says
):
    text, part = text_with(**{function: slip}), PART_OF[function].functions[0]
    wrong = solution_of_only(Path("mine.py"), part, text=text)
    assert train(recipe, "--own", wrong, "--anyway", *SMALL) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("minitransformer: ")
    assert says[0] in last


def test_what_is_not_written_or_half_is_the_packages_and_the_certificate_says_so(recipe, capsys):
    """A wrong forward without its backward stops no training: the package's pair stands there."""
    text = text_with(relu={"np.maximum": "np.minimum"}, relu_backward=NOT_WRITTEN)
    mine = solution_of_only(Path("mine.py"), "relu", "layer_norm", "dropout", text=text)
    assert train(recipe, "--own", mine, *SMALL) == 0
    said = capsys.readouterr()
    assert "yours: dropout, layer_norm\nthe package's: linear, relu, feed_forward," in said.err
    assert "wrong" not in said.err + said.out
    assert "2 of 23 parts are yours.\n" in said.out
    called = RUNNING - {"noam"}
    assert f"that yours can replace, {len(called) - 4} ran." in said.out
    for row in ("`dropout` | yours | yes", "`relu` | the package's | yes"):
        assert f"| {row} |" in said.out


def test_somebody_elses_file_of_that_name_is_left_as_it_is(recipe, relu, capsys):
    RUN.mkdir(parents=True)
    (RUN / "own.py").write_text("# somebody else's\n")
    assert train(recipe, "--own", relu, *SMALL, "--run-folder", RUN) == 1
    assert "own.py is there already, and is not what this training has" in capsys.readouterr().err
    assert (RUN / "own.py").read_text() == "# somebody else's\n"


def test_another_kind_of_model_does_not_translate_on_ones_own(recipe, relu, capsys):
    assert train(recipe, *SMALL, "--kind", "restricted") == 0
    for what in (["translate"], ["evaluate"], ["train", "--resume"]):
        assert command(*what, "runs/captions", "--own", relu) == 1
        assert "like yours, and kind 'restricted' has" in capsys.readouterr().err


def test_a_dry_run_runs_the_file_and_leaves_nothing(recipe, relu, capsys):
    assert train(recipe, "--own", relu, *SMALL, "--dry-run") == 0
    assert "yours: relu" in capsys.readouterr().err
    assert not Path("runs").exists()


def test_each_training_gets_a_folder_of_its_own(run, relu, capsys):
    assert train("captions.toml", "--own", relu, *SMALL) == 0
    said = capsys.readouterr().err
    assert "minitransformer translate runs/own-2 --own runs/own-2/own.py" in said
    assert "is not finished" not in said


@pytest.mark.parametrize("missing", ["model", "certificate"])
def test_who_begins_anew_is_told_how_to_go_on_with_what_was_cut_off(run, relu, missing, capsys):
    getattr(run, missing).unlink()
    assert train("captions.toml", "--own", relu, *SMALL, "--dry-run") == 0
    said = capsys.readouterr().err
    assert f"{run.path} is not finished; go on: {run.resume_command()}\n" in said


@pytest.mark.parametrize(("search", "slip", "says"), attempts("RETURNS", "own"))
def test_a_search_that_returns_something_else_is_said_to(run, capsys, search, slip, says):
    wrong = written(Path("wrong.py"), text_with(**{search: slip}))
    options = "--own", wrong, "--beam-size", 1 if search == "greedy" else 4
    assert command("translate", RUN, "ein Hund", *options) == 1
    assert says[0] in capsys.readouterr().err


def test_what_a_file_prints_is_not_mixed_with_what_a_command_prints(run, capsys):
    loud = written(Path("loud.py"), "print('hello')\n" + TEXT)
    assert command("translate", RUN, "ein Hund", "--own", loud) == 0
    said = capsys.readouterr()
    assert "hello" in said.err
    assert "hello" not in said.out


def test_the_package_is_drawn_at_the_steps_that_the_run_has_logged(run, monkeypatch):
    drawn = {}
    curves = lambda entries, _, package, **kw: drawn.update(mine=entries, theirs=package)  # noqa: E731
    monkeypatch.setattr("minitransformer.evaluation.plots.loss_curves", curves)
    run.log.write([entry for entry in run.log.entries() if entry["step"] % 2])
    assert command("plot", RUN) == 0
    assert [entry["step"] for entry in drawn["theirs"]] == list(losses(run.log))


@pytest.mark.parametrize("helper", ["leave_backward", "_layer"])
def test_a_helper_is_taken_for_no_misspelt_function(helper, tmp_path, capsys):
    text = f"{STUBS.read_text(encoding='utf-8')}\n\ndef {helper}(dz, cache):\n    pass\n"
    assert command("check", written(tmp_path / "own.py", text)) == 1
    assert "did you mean" not in capsys.readouterr().out


def test_a_file_laid_into_a_finished_run_is_not_what_it_was_trained_on(run, capsys):
    trained_on_own = "trained on functions of a learner's"
    assert command("translate", RUN, "ein Hund") == 0
    assert trained_on_own in capsys.readouterr().err
    Path("runs/captions/own.py").write_text(TEXT)
    assert command("translate", "runs/captions", "ein Hund") == 0
    assert trained_on_own not in capsys.readouterr().err


@pytest.mark.parametrize(("function", "slip", "says"), attempts("CHECKED", "own"))
def test_what_is_wrong_or_half_written_is_named_where_it_is_and_nowhere_else(
    tmp_path, capsys, function, slip, says
):
    """What calls it is right."""
    marked, following = says
    assert command("check", written(tmp_path / "own.py", text_with(**{function: slip}))) == 1
    said = capsys.readouterr().out
    assert re.findall(r"^ +((?:WRONG|to do) +\w+) +\d+ min", said, re.M) == [marked]
    assert said.endswith(f"32 of 33 right\nnext: {following}\n")


@pytest.mark.parametrize(("function", "slip", "says"), attempts("ASKED", "own"))
def test_one_function_can_be_asked_for(tmp_path, capsys, function, slip, says):
    text, part = text_with(**{function: slip}), PART_OF[function].functions[0]
    mine = solution_of_only(tmp_path / "own.py", part, text=f"{text}\n\nLAST = []\n")
    assert command("check", mine, function) == 1
    said = capsys.readouterr().out
    assert all(text in said for text in says)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="nothing stops a loop here")
def test_what_takes_too_long_is_wrong(tmp_path, capsys):
    text = text_with(relu={"return": f"{ENDLESS}\n    return"})
    assert command("check", solution_of_only(tmp_path / "own.py", "relu", text=text), "relu") == 1
    assert f"it takes {STOPPED}" in capsys.readouterr().out


def test_of_one_function_no_more_is_said(tmp_path, capsys):
    path = solution_of_only(tmp_path / "own.py", "relu", "layer_norm", text=text_with(**SLIP))
    before = signal.getsignal(signal.SIGALRM)
    assert command("check", path, "relu") == 0
    assert signal.getsignal(signal.SIGALRM) == before
    assert capsys.readouterr().out == "  right  relu                            10 min\n"
    assert command("check", path, "rellu") == 2
    assert "own has no function rellu; did you mean relu?" in capsys.readouterr().err


def test_to_mend_comes_before_to_write(wrong, capsys):
    assert command("check", "own", "--file", wrong) == 1
    said = capsys.readouterr().out
    assert said.endswith("0 of 33 right\nnext: mend layer_norm, see lesson 07\n")


def test_prints_are_counted(tmp_path, capsys):
    loud = written(tmp_path / "own.py", text_with(relu={"return": "print('x:', 2)\n    return"}))
    assert command("check", loud) == 0
    said = capsys.readouterr()
    counted = r"^relu printed while it was checked: x: 2, and so on: \d+ in all$"
    assert re.search(counted, said.err, re.M)
    assert "x: 2" not in said.out
    assert said.err.count("x: 2") == 4  # those that call it, too


@pytest.mark.parametrize(("name", "slip", "following"), [
    ("swiglu", {"gate * up, p": "gate + up, p"}, "of what came since 2017: mend swiglu"),
    ("swiglu", {"def ": "def _no_"}, "of what came since 2017: write swiglu"),
    ("max_pooling", {"def ": "def _no_"}, "for pictures: write max_pooling"),
])  # fmt: skip
def test_without_the_second_part_the_transformer_is_complete(
    tmp_path, capsys, name, slip, following
):
    mine = written(tmp_path / "own.py", text_with(**{name: slip}))
    assert command("check", mine) == 1
    complete = f"your Transformer is complete: minitransformer train toy --own {mine}"
    lesson = PART_OF[name].lesson
    said = capsys.readouterr().out
    assert said.endswith(f"right\n{complete}\nnext, {following}, see lesson {lesson}\n")
