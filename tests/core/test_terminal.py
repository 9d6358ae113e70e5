import errno
import io
import os
import sys
from contextlib import nullcontext, redirect_stderr

import pytest

from minitransformer.commands import fill, generate, tag, texts, translate
from minitransformer.core.terminal import ReadableStream, bare, exact, readable, readable_streams
from minitransformer.training.progress import Progress

HOSTILE = "a\x1b]0;title\x07\x1b[2Jb\rc\x9b1md\x7f\u202ee\u2066f"
ESCAPED = r"a\x1b]0;title\x07\x1b[2Jb\rc\x9b1md\x7f\u202ee\u2066f"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_nothing_that_a_terminal_obeys_is_readable():
    assert readable(HOSTILE) == ESCAPED
    controls = readable("".join(map(chr, range(0xA0))))
    assert controls.replace("\t", "").replace("\n", "").isprintable()


@pytest.mark.parametrize("text", ["", "Grüße\tan\nalle", "各☃\u0301 \xa0", "שלום\u200f مرحبا"])
def test_what_only_is_to_be_read_stays_as_it_is(text):
    assert readable(text) == text


def test_a_stream_gets_readable_text_in_whatever_way_it_is_written():
    stream = ReadableStream(io.StringIO())
    assert stream.write(HOSTILE) == len(HOSTILE)
    stream.writelines([HOSTILE, "\n"])
    print(HOSTILE, file=stream)
    assert stream.getvalue() == f"{ESCAPED}{ESCAPED}\n{ESCAPED}\n"


@pytest.mark.parametrize("method", ["write", "flush"])
def test_a_stream_that_takes_no_more_is_named(method, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(stream := Terminal(), method, full)
    with (
        redirect_stderr(stream),
        readable_streams(),
        pytest.raises(OSError, match="'standard error'"),
    ):
        print("a text", file=sys.stderr, flush=True)


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_what_is_asked_for_is_exact_where_no_terminal_is(stream):
    exact(ReadableStream(stream)).write(HOSTILE)
    assert stream.getvalue() == (ESCAPED if stream.isatty() else HOSTILE)
    assert exact(stream) is stream


def test_afterwards_the_streams_are_what_they_were():
    before = sys.stdout, sys.stderr
    with readable_streams():
        assert (bare(sys.stdout), bare(sys.stderr)) == before
    assert (sys.stdout, sys.stderr) == before


class Options:
    run_folder, device, text, own, seed, length = "run", "cpu", ["a"], None, 0, 9
    temperature, top_k, top_p, top, n_best, beam_size, alpha = 1.0, 0, 1.0, 5, 1, 4, 0.6
    attention, whole, accelerate = None, False, True


class Hostile:
    """What any of the commands loads, with a vocabulary of control characters."""

    text, truncated, gaps = HOSTILE, False, [[(HOSTILE, 0.5)]]

    def __init__(self, *_, **__):
        self.vocabulary = self

    unknown = encode = lambda self, text: []
    stream = lambda self, *_, **__: iter([HOSTILE])  # noqa: E731
    translations = lambda self, *_, **__: [[self]]  # noqa: E731
    fill = lambda self, *_: self  # noqa: E731
    label = lambda self, *_: [(HOSTILE, HOSTILE, 0.5)]  # noqa: E731


@pytest.mark.parametrize("a_terminal", [True, False])
def test_the_text_of_a_model_is_exact_but_on_a_terminal(a_terminal, monkeypatch):
    monkeypatch.setattr(texts, "opened", Hostile)
    monkeypatch.setattr(texts, "own_functions", nullcontext)
    monkeypatch.setattr(texts, "require_task", lambda *_: None)
    for command in (generate, fill, tag, translate):
        out = Terminal() if a_terminal else io.StringIO()
        monkeypatch.setattr("sys.stdout", out)
        with readable_streams():
            command.run(Options)
        assert (ESCAPED if a_terminal else HOSTILE) in out.getvalue()
        assert ("\x1b" in out.getvalue()) != a_terminal


def test_a_bar_of_progress_is_drawn_and_what_is_said_above_it_is_readable():
    terminal = Terminal()
    progress = Progress(ReadableStream(terminal))
    entry = {"step": 1, "loss": 2.5, "nll": 2.25, "tokens_per_second": 12345.6}
    progress.stepped(entry, 8)
    progress.say(HOSTILE)
    progress.close()
    shown = terminal.getvalue()
    assert shown.count("\r") >= 3
    assert r"\r" not in shown.replace(ESCAPED, "")
    assert f"\r{ESCAPED}\n" in shown
    assert HOSTILE not in shown
