import io
import os

import pytest

from minitransformer.tasks.translation import Translation
from minitransformer.training import progress as progress_module
from minitransformer.training.progress import Progress

BEST = {"bleu": 30.0, "epoch": 2}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def step(number):
    return {"step": number, "loss": 2.5, "nll": 2.25, "tokens_per_second": 12345.6}


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass only when a test says so."""
    now = [0.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    return now


def test_without_a_terminal_there_are_plain_lines_at_most_every_ten_seconds(clock):
    progress = Progress(io.StringIO())
    for number, seconds in [(1, 0), (2, 9.9), (3, 10), (4, 19.9), (5, 20.5)]:
        clock[0] = seconds
        progress.stepped(step(number), 8)
    progress.close()
    assert progress.stream.getvalue().splitlines() == [
        f"step {number} of 8: loss 2.500, NLL 2.250, 12,346 target tokens/s" for number in (1, 3, 5)
    ]


def test_on_a_terminal_there_is_a_bar_with_loss_speed_and_time_left():
    progress = Progress(Terminal())
    progress.stepped(step(1), 8)
    progress.stepped(step(4), 8)
    assert (progress.bar.initial, progress.bar.n, progress.bar.total) == (0, 4, 8)  # the first one
    progress.bar.refresh()
    shown = progress.stream.getvalue().split("\r")[-1]
    assert "4/8" in shown
    assert "loss 2.500, NLL 2.250, 12,346 target tokens/s" in shown
    assert "<" in shown  # time gone < time left
    progress.close()
    assert progress.bar is None
    assert progress.stream.getvalue().endswith("\n")


def test_on_a_terminal_without_tqdm_there_are_plain_lines(without):
    without("tqdm")
    progress = Progress(Terminal())
    progress.stepped(step(1), 8)
    progress.close()
    said = "step 1 of 8: loss 2.500, NLL 2.250, 12,346 target tokens/s\n"
    assert progress.stream.getvalue() == said


def test_the_bar_of_a_resumed_run_begins_where_it_goes_on():
    """Or else the time left would count steps of the run before as made just now."""
    progress = Progress(Terminal())
    progress.stepped(step(501), 1000)
    assert (progress.bar.initial, progress.bar.n) == (500, 501)
    progress.close()


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_a_validation_is_a_line_that_tells_the_best_one_if_it_is_another(stream):
    progress = Progress(stream())
    progress.stepped(step(1), 8)
    progress.validated({"epoch": 2, "bleu": 30.0}, BEST, Translation.score)
    progress.validated({"epoch": 3, "bleu": 29.94}, BEST, Translation.score)
    progress.close()
    lines = progress.stream.getvalue().replace("\r", "\n").splitlines()
    assert "epoch 2: validation BLEU 30.0" in lines
    assert "epoch 3: validation BLEU 29.9, best in epoch 2" in lines


def test_pairs_that_an_epoch_lacked_are_a_line_of_their_own():
    progress = Progress(io.StringIO())
    progress.validated({"epoch": 2, "bleu": 30.0, "left_out": 1234}, BEST, Translation.score)
    assert progress.stream.getvalue().splitlines() == [
        "epoch 2: validation BLEU 30.0",
        "epoch 2: training examples left out because they became too long: 1,234",
    ]


def test_everything_goes_to_standard_error_by_default(capsys):
    progress = Progress()
    progress.say("hello")
    progress.close()
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "hello\n")


@pytest.mark.parametrize("terminal", [False, True])
def test_a_reader_that_goes_away_is_not_missed(terminal, monkeypatch):
    reader, log = os.pipe()
    os.close(reader)
    with open(log, "w", buffering=1) as stream:
        monkeypatch.setattr(stream, "isatty", lambda: terminal, raising=False)
        progress = Progress(stream)
        progress.say("hello")
        progress.stepped(step(1), 8)
        progress.stepped(step(2), 8)
        progress.validated({"epoch": 2, "bleu": 30.0}, BEST, Translation.score)
        progress.close()
        stream.write("what Python flushes on its way out")
