"""``train --own``, and what becomes of such a run; ``check own``."""

import json
import re
import shlex
import signal
from pathlib import Path

import pytest
from exercise_files import written
from own_files import FUNCTIONS, PART_OF, STUBS, TEXT, solution_of_only, text_with
from tiny_translator import write_recipe

from minitransformer.commands.cli import main
from minitransformer.runs.run_folder import RunFolder
from minitransformer.training.trainer import Trainer

WRONG_NORM = text_with(layer_norm_backward={" - through_mean": ""})
NOT_WRITTEN = {"alive = cache\n    return dy * alive": "raise NotImplementedError"}
HALF_AND_WRONG = text_with(relu={"np.maximum": "np.minimum"}, relu_backward=NOT_WRITTEN)
RUN = Path("runs/own")
SMALL = ("--d-model", 8, "--d-ff", 8, "--batch-tokens", 128, "--epochs", 1)


def command(*arguments):
    return main([*map(str, arguments)])


def train(*arguments):
    return command("train", *arguments)


def losses(log):
    return {e["step"]: e["loss"] for e in log.entries() if e["kind"] == "train"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a recipe, a file that leaves a mark where it is run, and its run."""
    folder = tmp_path_factory.mktemp("own")
    mark = "\nimport pathlib\npathlib.Path(__file__).with_name('mark').touch()\n"
    mine = written(folder / "mine.py", TEXT + mark)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert train(write_recipe(folder), "--own", mine, *SMALL) == 0
    return folder


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    """A TOML file in the current folder, which is empty but for it and its corpus."""
    monkeypatch.chdir(tmp_path)
    return str(write_recipe(tmp_path))


def test_a_training_on_ones_own_keeps_the_file_and_ends_with_a_certificate(run, trained):
    assert run.own.read_bytes() == (trained / "mine.py").read_bytes()
    text = run.certificate.read_text()
    assert "23 of 23 parts are yours.\nOf the package's functions that yours can " in text
    assert "replace, none ran.\n" in text.replace("\n| function", "| function")
    ran = {name: "no" if name == "noam" else "yes" for name in PART_OF}  # linear_decay does
    assert all(f"| `{name}` | yours | {ran[name]} |" in text for name in PART_OF)
    assert text.count("\n- beam search: ") == 3


def test_its_first_losses_are_those_of_the_packages_readable_functions(run, capsys):
    mine, packages = losses(run.log), losses(run.package_log)
    assert list(packages) == list(mine)  # one epoch of one
    assert mine == pytest.approx(packages, rel=1e-6)
    stated = run.certificate.read_text()
    difference = max(abs(mine[step] / packages[step] - 1) for step in mine)
    assert f"by {difference:.1e} of their size at most" in stated
    last = max(mine)
    assert (
        f"step {last} was {mine[last]:.4f}, and with the package's {packages[last]:.4f}" in stated
    )
    assert train("captions.toml", *SMALL, "--no-accelerate") == 0
    assert losses(RunFolder("runs/captions").log) == packages


def test_the_certificate_has_the_score_of_greedy_search(run, capsys):
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
    run.model.unlink()
    assert train("--resume", RUN) == 1
    assert (
        f"code only runs when you say so; go on: {run.resume_command()}" in capsys.readouterr().err
    )
    mine = Path("mine.py")
    mine.write_text(mine.read_text() + "# changed\n")
    assert train("--resume", RUN, "--own", mine) == 1
    assert f"mine.py differs from it; go on: {run.resume_command()}" in capsys.readouterr().err
    run.own.write_bytes(mine.read_bytes())
    assert train("--resume", RUN, "--own", mine) == 1
    assert "own.py has SHA-256" in capsys.readouterr().err
    run.own.unlink()
    assert train("--resume", RUN) == 1
    assert "own.py is missing, and the run was trained with one" in capsys.readouterr().err
    assert train("--resume", RUN, "--own", mine) == 1
    assert "or put the file back" in capsys.readouterr().err


def test_a_training_cut_off_goes_on_to_the_same_end(recipe, run, monkeypatch, capsys):
    take_step = Trainer.take_step

    def interrupted(trainer, *arguments):
        take_step(trainer, *arguments)
        if trainer.step == 3:
            raise KeyboardInterrupt

    other = "--run-folder", "cut off"
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "take_step", interrupted)
        assert train(recipe, "--own", "mine.py", *SMALL, "--save-every", 1, *other) == 130
    go_on = capsys.readouterr().err.splitlines()[-1].partition(": ")[2]
    assert go_on.endswith("--own 'cut off/own.py'")
    assert command(*shlex.split(go_on)[1:]) == 0
    assert losses(RunFolder("cut off").log) == losses(run.log)


def test_started_over_it_keeps_what_it_was_begun_with(run, capsys):
    assert train("--resume", RUN, "--own", run.own, "--start-over") == 0
    before = RunFolder(RUN / "before-1")
    assert before.own.read_bytes() == run.own.read_bytes()
    assert losses(before.log) == losses(run.log)
    assert before.package_log.path.exists()
    assert before.certificate.exists()


def test_started_over_it_takes_what_the_file_holds_now(run, capsys):
    mine = written(Path("mine.py"), TEXT + "# changed\n")
    assert train("--resume", RUN, "--own", mine, "--start-over") == 0
    assert run.own.read_bytes() == mine.read_bytes()
    assert "--anyway" not in run.resume_command()


def test_started_over_with_what_is_wrong_it_goes_on_so_too(run, capsys):
    wrong = solution_of_only(Path("mine.py"), "layer_norm", text=WRONG_NORM)
    assert train("--resume", RUN, "--own", wrong, "--start-over", "--anyway") == 0
    assert "--anyway" in run.resume_command()


def test_a_certificate_that_was_not_made_is_made_later(run, capsys):
    before = run.certificate.read_text()
    run.certificate.unlink()
    assert train("--resume", RUN, "--own", "mine.py") == 0
    assert run.certificate.read_text() == before
    assert capsys.readouterr().out == run.certificate.read_text()


def test_a_run_on_the_packages_functions_does_not_go_on_with_others(recipe, capsys):
    assert train(recipe, *SMALL) == 0
    mine = solution_of_only(Path("mine.py"), "relu")
    assert train("--resume", "runs/captions", "--own", mine) == 1
    assert "it is trained on the package's functions" in capsys.readouterr().err


def test_a_wrong_function_is_refused_with_its_diagnosis_before_anything_is_made(recipe, capsys):
    wrong = solution_of_only(Path("mine.py"), "layer_norm", text=WRONG_NORM)
    assert train(recipe, "--own", wrong) == 1
    said = capsys.readouterr().err
    assert "wrong in mine.py: layer_norm. Mend it, or see what comes of it: --anyway" in said
    assert re.search(r"WRONG  layer_norm .*\n.*mean", said)
    assert "--anyway" in said
    assert not Path("runs").exists()


def test_anyway_it_trains_and_the_loss_tells(recipe, capsys):
    wrong = solution_of_only(Path("mine.py"), "layer_norm", text=WRONG_NORM)
    assert train(recipe, "--own", wrong, "--anyway", *SMALL) == 0
    said = capsys.readouterr()
    assert "wrong, and used anyway: layer_norm\n" in said.err
    assert "| `layer_norm` | yours, wrong | yes |" in said.out
    assert float(re.search(r"by (\S+) of their size at most", said.out)[1]) > 1e-4


def test_anyway_is_in_the_command_that_goes_on(recipe, capsys, monkeypatch):
    wrong = solution_of_only(Path("mine.py"), "layer_norm", text=WRONG_NORM)
    save = Trainer.save

    def interrupted(trainer):
        save(trainer)
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "save", interrupted)
        assert train(recipe, "--own", wrong, "--anyway", *SMALL) == 130
    _, go_on = capsys.readouterr().err.splitlines()[-1].split("; go on: ")
    assert command(*shlex.split(go_on)[1:]) == 0


@pytest.mark.parametrize(
    ("name", "slip", "says"),
    [
        ("layer_norm", {"dx, dgamma, dbeta": "dx, dgamma"}, "on a wrong layer_norm"),
        (
            "encoder_layer",
            {"tuple(dnetwork), ": "(*dnetwork[:3], dnetwork[3][None]), "},
            "encoder_layer_backward returned a gradient of shape (1, 8)",
        ),
        ("relu", {"= cache": "= cash"}, "relu_backward raised NameError"),
    ],
)
def test_anyway_it_stops_with_a_clear_error_where_it_cannot_go_on(recipe, capsys, name, slip, says):
    text = text_with(**{f"{name}_backward": slip})
    wrong = solution_of_only(Path("mine.py"), name, text=text)
    assert train(recipe, "--own", wrong, "--anyway", *SMALL) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("minitransformer: ")
    assert says in last


def test_what_is_not_written_is_the_packages_and_the_certificate_says_so(recipe, capsys):
    mine = solution_of_only(Path("mine.py"), "relu", "layer_norm")
    assert train(recipe, "--own", mine, *SMALL) == 0
    said = capsys.readouterr()
    assert "yours: relu, layer_norm\nthe package's: linear, softmax," in said.err
    assert "2 of 23 parts are yours.\n" in said.out
    called = {f for name in FUNCTIONS for f in FUNCTIONS[name]} - {"noam"}
    assert f"that yours can replace, {len(called) - 4} ran." in said.out
    for row in ("`relu` | yours | yes", "`linear` | the package's | yes"):
        assert f"| {row} |" in said.out


def test_a_file_in_which_nothing_is_written_trains_nothing(recipe, capsys):
    assert train(recipe, "--own", STUBS) == 1
    assert "nothing is written in" in capsys.readouterr().err
    assert not Path("runs").exists()


def test_somebody_elses_file_of_that_name_is_left_as_it_is(recipe, capsys):
    RUN.mkdir(parents=True)
    (RUN / "own.py").write_text("# somebody else's\n")
    mine = solution_of_only(Path("mine.py"), "relu")
    assert train(recipe, "--own", mine, *SMALL, "--run-folder", RUN) == 1
    assert "own.py is there already, and is not what this training has" in capsys.readouterr().err
    assert (RUN / "own.py").read_text() == "# somebody else's\n"


OTHER = "--own is for models of encoder and decoder layers like yours, and kind 'restricted' has"


def test_another_kind_of_model_is_not_trained_on_ones_own(recipe, capsys):
    """The learner's layers know no window: they would look at what is still to be said."""
    mine = solution_of_only(Path("mine.py"), "relu")
    assert train(recipe, "--own", mine, *SMALL, "--kind", "restricted") == 1
    assert OTHER in capsys.readouterr().err
    assert not Path("runs").exists()


def test_another_kind_of_model_does_not_translate_on_ones_own(recipe, capsys):
    mine = solution_of_only(Path("mine.py"), "relu")
    assert train(recipe, *SMALL, "--kind", "restricted") == 0
    for command_name in ("translate", "evaluate"):
        assert command(command_name, "runs/captions", "--own", mine) == 1
        assert OTHER in capsys.readouterr().err
    assert train("--resume", "runs/captions", "--own", mine) == 1
    assert OTHER in capsys.readouterr().err


def test_anyway_goes_with_ones_own(recipe):
    with pytest.raises(SystemExit, match="2"):
        train(recipe, "--anyway")


def test_a_dry_run_runs_the_file_and_leaves_nothing(recipe, capsys):
    mine = solution_of_only(Path("mine.py"), "relu")
    assert train(recipe, "--own", mine, *SMALL, "--dry-run") == 0
    assert "yours: relu" in capsys.readouterr().err
    assert not Path("runs").exists()


def test_a_mistake_is_named_where_it_is_and_nowhere_else(tmp_path, capsys):
    """The layers of encoder and decoder call it, and are right."""
    wrong = written(tmp_path / "own.py", WRONG_NORM)
    assert command("check", wrong) == 1
    said = capsys.readouterr().out
    assert re.findall(r"^ +WRONG +(\w+) +\d+ min", said, re.M) == ["layer_norm"]
    assert said.endswith("22 of 23 right\nnext: mend layer_norm, see lesson 07\n")


@pytest.mark.parametrize(
    ("part", "before", "lesson"),
    [("relu", "    return", "02"), ("dropout", "    if", "12")],  # which attention stands before
)
def test_what_is_half_written_is_to_do_and_what_calls_it_is_right(
    part, before, lesson, tmp_path, capsys
):
    slip = {before: f"    raise NotImplementedError\n{before}"}
    half = written(tmp_path / "own.py", text_with(**{f"{part}_backward": slip}))
    assert command("check", half) == 1
    said = capsys.readouterr().out
    assert re.findall(r"^ +to do +(\w+)", said, re.M) == [part]
    assert said.endswith(f"22 of 23 right\nnext: write {part}, see lesson {lesson}\n")


@pytest.mark.parametrize(
    ("slip", "says"),
    [
        (
            dict(relu_backward=NOT_WRITTEN),
            "relu +10 min\n.*no mistake found so far; still to do: relu_backward",
        ),
        (
            dict(relu_backward={"def relu_backward": "def relu_backwards"}),
            r"relu +10 min\n.*still to do: relu_backward; did you mean relu_backwards\?",
        ),
        (
            dict(split_heads={"def split_heads": "def splitheads"}),
            r"split_heads +\d+ min\n.*did you mean splitheads\?",
        ),
        (
            dict(softmax_backward={"def softmax_backward": "def soft_max_backward"}),
            r"softmax +\d+ min\n.*did you mean soft_max_backward\?",
        ),
    ],
)
def test_what_is_missing_of_a_part_is_named(tmp_path, capsys, slip, says):
    (function,) = slip
    path = written(tmp_path / "own.py", text_with(**slip))
    assert command("check", path, function) == 1
    assert re.search(f"to do +{says}", capsys.readouterr().out)


@pytest.mark.parametrize(
    "helper", ["_leave_backward", "leave_backward", "_attention_backward", "_layer"]
)
def test_a_helper_is_taken_for_no_misspelt_function(helper, tmp_path, capsys):
    text = f"{STUBS.read_text(encoding='utf-8')}\n\ndef {helper}(dz, cache):\n    pass\n"
    assert command("check", written(tmp_path / "own.py", text)) == 1
    assert "did you mean" not in capsys.readouterr().out


def test_a_wrong_forward_is_said_to_be_before_the_backward_is_written(tmp_path, capsys):
    assert command("check", written(tmp_path / "own.py", HALF_AND_WRONG), "relu") == 1
    assert re.search(r"WRONG +relu .*\n.*negative entries become 0", capsys.readouterr().out)


def test_prints_are_counted(tmp_path, capsys):
    loud = written(tmp_path / "own.py", text_with(relu={"return": "print('x:', 2)\n    return"}))
    assert command("check", loud) == 0
    said = capsys.readouterr()
    assert re.search(
        r"^relu printed while it was checked: x: 2, and so on: \d+ in all$", said.err, re.M
    )
    assert "x: 2" not in said.out
    assert said.err.count("x: 2") == 4  # those that call it, too


ENDLESS = """
    import signal
    left, _ = signal.setitimer(signal.ITIMER_REAL, 0.01)  # or else the test would take a minute
    while left > 0:
        pass
    return"""


def test_a_loop_that_never_ends_is_ended(tmp_path, capsys):
    endless = text_with(noam={"\n    return": ENDLESS})
    assert command("check", written(tmp_path / "own.py", endless)) == 1
    said = capsys.readouterr().out
    assert re.search(r"WRONG +noam .*\n.*is there a loop that never ends", said)
    assert "22 of 23 right" in said


@pytest.mark.parametrize(
    ("slips", "says"),
    [
        (
            dict(
                relu={"return np": "LAST[:] = [x > 0]\n    return np"},
                relu_backward={"alive = cache": "alive = LAST[0]"},
            ),
            "no global",
        ),
        (
            dict(layer_norm={"    centred =": "    x += 0\n    centred ="}),
            "must not write to its inputs",
        ),
    ],
    ids=["a global", "inputs"],
)
def test_state_in_a_global_and_writing_to_inputs_are_refused(tmp_path, capsys, slips, says):
    wrong = written(tmp_path / "own.py", text_with(**slips) + "\n\nLAST = []\n")
    assert command("check", wrong, next(iter(slips))) == 1
    assert says in capsys.readouterr().out


def test_the_end_of_a_training_may_be_interrupted_and_made_up_for(recipe, capsys, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("minitransformer.course.own.training.certify", interrupt)
        mine = solution_of_only(Path("own.py"), "relu")
        assert train(recipe, "--own", mine, *SMALL) == 130
    said = capsys.readouterr().err
    run = RunFolder(RUN)
    assert f"the training is whole; its certificate: {run.resume_command()}\n" in said
    assert (run.path / "loss.png").exists()
    assert command(*shlex.split(run.resume_command())[1:]) == 0
    assert run.certificate.exists()


@pytest.mark.parametrize(
    ("slip", "beam_size", "says"),
    [
        (dict(greedy={"said[:, 1:]": "said[0, 1:]"}), 1, "greedy must return ids"),
        (dict(greedy={"said[:, 1:]": "said[:, 1:] * 1.0"}), 1, "greedy must return ids"),
        (
            dict(beam_search={"return (rank": "return [0] or (rank"}),
            4,
            "beam_search must return a list of pairs",
        ),
    ],
)
def test_a_search_that_returns_something_else_is_said_to(run, capsys, slip, beam_size, says):
    wrong = written(Path("wrong.py"), text_with(**slip))
    options = "--own", wrong, "--beam-size", beam_size
    assert command("translate", RUN, "ein Hund", *options) == 1
    assert says in capsys.readouterr().err


def test_what_a_file_prints_is_not_mixed_with_what_a_command_prints(run, capsys):
    loud = written(Path("loud.py"), "print('hello')\n" + TEXT)
    assert command("translate", RUN, "ein Hund", "--own", loud) == 0
    said = capsys.readouterr()
    assert "hello" in said.err
    assert "hello" not in said.out


def test_each_training_gets_a_folder_of_its_own(run, capsys):
    mine = solution_of_only(Path("mine.py"), "relu")
    assert train("captions.toml", "--own", mine, *SMALL) == 0
    said = capsys.readouterr().err
    assert "minitransformer translate runs/own-2 --own runs/own-2/own.py" in said
    assert "is not finished" not in said


def test_a_file_laid_into_a_finished_run_is_not_what_it_was_trained_on(recipe, run, capsys):
    trained_on_own = "trained on functions of a learner's"
    assert command("translate", RUN, "ein Hund") == 0
    assert trained_on_own in capsys.readouterr().err
    assert train(recipe, *SMALL) == 0
    Path("runs/captions/own.py").write_text(TEXT)
    assert command("translate", "runs/captions", "ein Hund") == 0
    assert trained_on_own not in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["model", "certificate"])
def test_who_begins_anew_is_told_how_to_go_on_with_what_was_cut_off(run, missing, capsys):
    getattr(run, missing).unlink()
    mine = solution_of_only(Path("mine.py"), "relu")
    assert train("captions.toml", "--own", mine, *SMALL) == 0
    said = capsys.readouterr().err
    assert f"{run.path} is not finished; go on: {run.resume_command()}\n" in said


def test_one_function_can_be_asked_for(tmp_path, capsys):
    wrong = written(tmp_path / "own.py", WRONG_NORM)
    assert command("check", wrong, "layer_norm_backward") == 1
    said = capsys.readouterr().out
    assert said.startswith("  WRONG  layer_norm ")
    assert "relu" not in said
    assert command("check", wrong, "relu") == 0
    assert capsys.readouterr().out == "  right  relu                            10 min\n"
    assert command("check", wrong, "rellu") == 2
    assert "own has no function rellu; did you mean relu?" in capsys.readouterr().err


def test_the_package_is_drawn_at_the_steps_that_the_run_has_logged(run, monkeypatch):
    drawn = {}
    curves = lambda entries, _, package, **kw: drawn.update(mine=entries, theirs=package)  # noqa: E731
    monkeypatch.setattr("minitransformer.evaluation.plots.loss_curves", curves)
    run.log.write([entry for entry in run.log.entries() if entry["step"] % 2])
    assert command("plot", RUN) == 0
    assert [entry["step"] for entry in drawn["theirs"]] == list(losses(run.log))


def test_a_wrong_forward_without_its_backward_stops_no_training(recipe, capsys):
    """It does not stand in: the package's pair does."""
    half = written(Path("mine.py"), HALF_AND_WRONG)
    assert train(recipe, "--own", half, *SMALL) == 0
    said = capsys.readouterr()
    assert "the package's: relu\n" in said.err
    assert "wrong" not in said.err + said.out
