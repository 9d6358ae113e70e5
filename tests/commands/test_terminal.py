import sys
from contextlib import nullcontext

import pytest

from minitransformer.commands import fill, generate, translate
from minitransformer.commands.terminal import shown

HOSTILE = "a\x1b]0;title\x07\x1b[2Jb\rc\x9b1md\x7f"
ESCAPED = r"a\x1b]0;title\x07\x1b[2Jb\x0dc\x9b1md\x7f"


def make_terminal(monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)


def test_a_terminal_gets_nothing_that_it_obeys(monkeypatch):
    make_terminal(monkeypatch)
    assert shown(HOSTILE) == ESCAPED
    controls = shown("".join(map(chr, range(0xA0))))
    assert controls.replace("\t", "").replace("\n", "").isprintable()


@pytest.mark.parametrize("text", ["", "Grüße\tan\nalle", "各☃\u0301 \xa0"])
def test_what_only_is_to_be_read_stays_as_it_is(text, monkeypatch):
    make_terminal(monkeypatch)
    assert shown(text) == text


def test_a_program_gets_the_text_as_it_is():
    assert shown(HOSTILE) == HOSTILE


class Options:
    run_folder, device, text, own, seed, length = "run", "cpu", ["a"], None, 0, 9
    temperature, top_k, top_p, top, n_best, beam_size, alpha = 1.0, 0, 1.0, 5, 1, 4, 0.6
    attention = None


class Hostile:
    """What any of the commands loads, with a vocabulary of control characters."""

    text, truncated, gaps = HOSTILE, False, [[(HOSTILE, 0.5)]]

    def __init__(self, *_, **__):
        self.vocabulary = self

    load = classmethod(lambda cls, *_: cls())
    unknown = encode = lambda self, text: []
    stream = lambda self, *_, **__: iter([HOSTILE])  # noqa: E731
    translations = lambda self, *_, **__: [[self]]  # noqa: E731
    fill = lambda self, *_: self  # noqa: E731


def test_no_command_shows_a_terminal_the_control_characters_of_a_vocabulary(monkeypatch, capsys):
    make_terminal(monkeypatch)
    monkeypatch.setattr(generate, "TextGenerator", Hostile)
    monkeypatch.setattr(fill, "Filler", Hostile)
    monkeypatch.setattr(translate, "translator_of", Hostile)
    monkeypatch.setattr("minitransformer.commands.translate.own_functions", nullcontext)
    for command in (generate, fill, translate):
        monkeypatch.setattr(command, "require_task", lambda *_: None)
        command.run(Options)
        said = capsys.readouterr().out
        assert ESCAPED in said
        assert "\x1b" not in said
