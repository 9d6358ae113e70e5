"""Command lines and recipes as nobody writes them end with 0, 1 or 2 and say why in a line.

Each seed makes one; ``--fuzz SECONDS`` tries seeds for so long.
"""

import io
import random

import pytest
from tiny_translator import status_of, train_once, write_recipe

from minitransformer.commands.cli import COMMANDS
from minitransformer.training.recipe import settings

# Nothing between: there are sizes that this machine has the memory for, and not the time.
NUMBERS = ["0", "1", "2", "-1", "1.5", "1e-9", "1e400", "nan", "inf", "-inf", "9" * 30, "9" * 5000]
WORDS = ["", "-", "-x", "--x", "😀", "\udce4", "\ufeffx", "a b", "x" * 5000, "/", ".", "no/such"]
CHOICES = ["cpu", "tpu", "cuda:99", "train", "validation", "pre", "noam", "files", "toy.toml"]
OPTIONS = {
    "translate": ["--beam-size", "--alpha", "--n-best", "--device", "--whole", "--"],
    "evaluate": [
        *("--split", "--data-dir", "--beam-size", "--alpha", "--checkpoints", "--json"),
        *("--ten-crops", "--confusion"),
    ],
    "train": ["--resume", "--from", "--run-folder", "--device", "--no-accelerate"]
    + [f"--{name.replace('_', '-')}" for name in settings()],
    "generate": ["--length", "--temperature", "--top-k", "--top-p", "--seed", "--device", "--"],
    "fill": ["--whole", "--top", "--device", "a ___", "--"],
    "tag": ["--whole", "--device", "a b", "--"],
    "classify": ["--looked-at", "--device", "a.png", "--"],
    "explore": ["--output", "--no-open", "--sentences", "--own", "--"],
    "check": ["--file"],
    "gradcheck": ["--seed", "--directions", "--json", "--accelerate"],
}


@pytest.fixture
def outcome(tmp_path, monkeypatch, capsys):
    """What a command line ends with, run where it can do no harm."""
    monkeypatch.chdir(tmp_path)

    def run(arguments):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Hund\n\xff\n")))
        status = status_of(arguments)
        captured = capsys.readouterr()
        assert status in (0, 1, 2), arguments
        if status and not captured.out.startswith('{"right": '):  # as gradcheck --json says it
            last = captured.err.splitlines()[-1]
            assert last.startswith("minitransformer"), (arguments, last)
        return status

    return run


def test_any_command_line_ends_in_good_order(tmp_path_factory, outcome, fuzz_cases):
    run_folder = str(train_once(tmp_path_factory))
    statuses = []
    for seed in fuzz_cases(100):
        rng = random.Random(seed)
        command = rng.choice(list(COMMANDS))
        arguments = [command]
        if command == "train":
            arguments += ["--dry-run", rng.choice(["no recipe", "--epochs"])]  # which never begins
        elif command == "gradcheck":
            arguments.append("softmax")  # as all layers take long
        elif command in ("translate", "evaluate", "info") and rng.random() < 0.5:
            arguments.append(run_folder)
        for _ in range(rng.randrange(5)):
            words = rng.choice([OPTIONS.get(command, ["--"]), NUMBERS, WORDS, CHOICES])
            arguments.append(rng.choice(words))
        statuses.append(outcome(arguments))
    assert set(statuses) == {0, 1, 2}


def hostile_recipe(rng, text):
    """A recipe with some of its values, or of its characters, replaced."""
    lines = text.splitlines()
    for _ in range(rng.randrange(1, 4)):
        i = rng.randrange(len(lines))
        kind = rng.randrange(4)
        if kind == 0 and "=" in lines[i]:
            name = lines[i].partition("=")[0]
            value = rng.choice([*NUMBERS, "true", "[]", "{}", "'x'", '"\\u0000"', "1979-05-27", ""])
            lines[i] = f"{name}= {value}"
        elif kind == 1 and lines[i]:
            at = rng.randrange(len(lines[i]))
            piece = rng.choice(["\0", "\ufeff", "\ud800", "=", '"', "[", "#", "😀", "[" * 5000])
            lines[i] = lines[i][:at] + piece + lines[i][at + 1 :]
        elif kind == 2:
            lines.insert(rng.randrange(len(lines)), lines[i])
        elif len(lines) > 1:
            del lines[i]
    return "\n".join(lines).encode(errors="surrogatepass")


def test_any_recipe_is_prepared_or_refused(tmp_path, outcome, fuzz_cases):
    text = write_recipe(tmp_path).read_text(encoding="utf-8")
    path, statuses = tmp_path / "hostile.toml", []
    for seed in fuzz_cases(15):
        path.write_bytes(hostile_recipe(random.Random(seed), text))
        statuses.append(outcome(["train", "--dry-run", str(path)]))
    assert set(statuses) == {0, 1}
