"""A wrong command line is refused before any work, by what is wrong and what to do."""

import re
import shlex

import pytest
from tiny_translator import status_of

from minitransformer.commands.cli import COMMANDS

SEARCH = "translate RUN Hund"
NEVER = "translate none Hallo"
RUNS = {
    "RUN": "translate",
    "GPT": "generate",
    "BERT": "fill",
    "TAGGER": "tag",
    "PICTURES": "classify",
}  # by the command that uses them
WRONG = [  # what is typed, with RECIPE for the file of RUN; the exit status; what is said
    # Names that there are not, and what is meant
    ("", 2, "usage: minitransformer .*^    train "),
    ("trian toy", 2, "there is no command 'trian'; did you mean train?"),
    ("sing toy", 2, "there is no command 'sing'; the commands are train, translate, generate, "),
    ("info --colour", 2, "^usage: minitransformer info .*unrecognized arguments: --colour$"),
    ("info run 'too much'", 2, "^usage: minitransformer info .*arguments: too much$"),
    ("train toy --epocs 1", 2, "^usage: .*arguments: --epocs 1; did you mean --epochs?$"),
    ("gradcheck --jsn=1", 2, "^usage: .*arguments: --jsn=1; did you mean --json?$"),
    ("--device=cpu translate RUN Hund", 2, "unrecognized arguments: --device=cpu$"),
    ("translate RUN --beam-size 1 -Hund", 2, "unrecognized arguments: -Hund$"),
    ("translate RUN Hund --alpha x", 2, "argument --alpha: 'x' is no number, 0 or more$"),
    ("gradcheck atention", 2, "no layer 'atention'; did you mean attention?$"),
    ("gradcheck my_file.py", 2, "say which function of the file: my_file.py:my_function"),
    ("check ex99", 2, "there is no exercise 'ex99'; choose one of ex0"),
    ("check ex07", 2, "^minitransformer check: there is no .*--file PATH"),
    ("train nonsense", 1, "there is no file 'nonsense', and the recipes of the package are alex"),
    # Options that do not go together
    ("train", 2, "say what to train: RECIPE, --from FOLDER, or --resume FOLDER"),
    ("train toy --resume run", 2, "argument --resume: not allowed with argument RECIPE"),
    ("train --resume run --epochs 3", 2, "as it was set up; leave out --epochs"),
    ("train --resume run --run-folder x --dry-run --d-ff 8", 2, "out --run-folder, --dry-run, --d"),
    ("train --resume run --from other", 2, "leave out --from$"),
    ("train toy --start-over", 2, "--start-over goes with --resume"),
    ("check ex01 --json", 2, "--json goes without an exercise"),
    ("compare RUN --alpha 1 --data-dir x", 2, "--data-dir, --alpha: that is for translations of"),
    ("compare RUN --device cpu", 2, "--device: that is for translations of"),
    ("generate GPT a --anyway", 2, "unrecognized arguments: --anyway"),
    ("evaluate GPT --text a.txt --data-dir x", 2, "--data-dir is of the run's corpus; leave it"),
    ("gradcheck my_file.py --timeout 60", 2, "say which function of the file"),
    ("gradcheck relu --directions 2 --timeout 1", 2, "--directions, --timeout: that is for a pair"),
    (f"{NEVER} --n-best 5", 2, "--n-best 5 needs --beam-size 5 or more, and it is 4"),
    ("evaluate RUN --ten-crops", 2, "was trained for translation; leave out --ten-crops$"),
    ("classify none", 2, "the following arguments are required: picture$"),
    *((f"import {given}", 2, "a .bin of llama2.c goes with --vocabulary FILE")
      for given in ("a.bin", "a.gguf --vocabulary b")),
    # Values that are none
    ("train toy --epochs many", 2, "argument --epochs: invalid int value: 'many'"),
    *((f"{NEVER} --alpha {value}", 2, f"'{value}' is no number, 0 or more")
      for value in ("nan", "inf", "-1")),
    ("gradcheck --seed -1", 2, "'-1' is no whole number, 0 or more"),
    *((f"{line} {value}", 2, f"'{value}' is no whole number, 1 or more") for line, value in (
        (f"{NEVER} --beam-size", "0"), (f"{NEVER} --beam-size", "-1"), (f"{NEVER} --n-best", "two"),
        ("gradcheck --directions", "-1"), ("gradcheck --directions", "0"),
        ("gradcheck --timeout", "0"), ("gradcheck --timeout", "two"),
    )),
    # Files that cannot be written
    (f"{NEVER} --attention out.jpg", 2, "'out.jpg' must end in .png, .pdf, .svg"),
    *((f"{line} out.jpg", 2, "'out.jpg' must end in .png, .pdf, .svg")
      for line in ("classify none a.png --looked-at", "evaluate none --confusion")),
    (f"{NEVER} --attention no/such/out.png", 2, "cannot be written: there is no folder no/such"),
    (f"{NEVER} --attention .", 2, "'.' cannot be written: it is a folder"),
    *((f"evaluate none --{name} no/such", 2, "'no/such' cannot be written: there is no folder no")
      for name in ("json", "output")),
    # What the program refuses
    ("evaluate PICTURES --data-dir x", 1, "data_dir='x' is for corpus='fashion-mnist', 'mnist' or"),
    ("train toy --num-heads 3", 1, "d_model=128 is not divisible by num_heads=3"),
    ("train toy --batch-tokens 0", 1, "batch_tokens=0 must be"),
    ("train toy --corpus paper", 1, "corpus='paper'; choose 'toy', 'multi30k' or 'files'"),
    ("train toy --languages de-fr", 1, "languages='de-fr'"),
    ("train toy --kind mamba", 1, "kind='mamba'; choose 'transformer', "),
    ("train multi30k-cpu --languages de-de", 1, "languages='de-de'"),
    ("train shapes --pictures a", 1, "a' is for corpus='folder' or 'npz', and here it is 'shapes'"),
    ("train shapes --corpus folder", 1, "corpus='folder' needs pictures: --pictures FOLDER"),
    ("train shapes --depth 20", 1, "kind 'small-network' has no depth, which is for residual-netw"),
    ("train cnn --held-out 0.9", 1, "held_out=0.9 must be 0.5 at most"),
    ("train toy --device gpu", 1, "unknown device 'gpu'"),
    *((f"train {name}", 1, "corpus='text' needs text: --text FILE") for name in ("gpt", "bert")),
    ("train --resume .", 1, "is no run folder: it has no config.json"),
    ("train tagger --from none", 1, "there is no such folder$"),
    ("train RECIPE --epochs 0", 1, "epochs=0 must be > 0"),
    ("train RECIPE --train-source /no.de", 1, "/no.de: No such file or directory"),
    ("train toy --weight-decay 0.1", 1, "='adam'; leave it out, or choose adamw or sgd$"),
    ("evaluate RUN --split tests", 1, "split='tests'; choose 'train' or 'validation'$"),
    ("compare RUN --split tests", 1, "split='tests'; choose 'train' or 'validation'$"),
    ("evaluate PICTURES --split test", 1, "split='test'; choose 'validation'$"),
    ("compare TAGGER --split test", 1, "--split is for runs that translate; leave it out$"),
    ("compare RUN TAGGER", 1,
     "was trained for translation and .* for tagging, and their scores cannot be compared$"),
    ("chat GPT a", 1, "minitransformer generate goes on with texts"),
    ("chat BERT a", 1, "try it: minitransformer fill "),
    ("import no/such", 1, "no/such is nothing that is imported; give smollm2, a .gguf"),
    ("import no/such.gguf", 1, "no/such.gguf: No such file"),
    ("explore TAGGER", 1, "this one is of kind 'tagger'; minitransformer train toy"),
    (f"{SEARCH} --alpha 1000", 1, "alpha=1000.0 makes the length penalty of 40 tokens, the most"),
    ("generate GPT a --temperature -1", 1, "temperature=-1.0 must be"),
    *((f"generate GPT a --top-p {p}", 1, f"top_p={p} must lie in") for p in ("0.0", "nan")),
    (f"{SEARCH} --beam-size 81", 1, "beam_size=81 is more than the 80 pieces of the vocab"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "status", "says"), WRONG)
def test_a_wrong_line_changes_nothing(line, status, says, runs, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    places = {word: runs[RUNS[word]] for word in RUNS if word in line}
    places["RECIPE"] = runs["translate"].parent / "captions.toml"
    assert status_of([str(places.get(word, word)) for word in shlex.split(line)]) == status
    out, error = capsys.readouterr()
    pattern = re.sub(r"([(?+])", r"\\\1", says)
    assert re.search(pattern, error, re.DOTALL | re.MULTILINE), error
    assert (out, list(tmp_path.iterdir())) == ("", [])
    if status == 1:  # whoever mistypes has no use for a traceback
        assert re.fullmatch(r"minitransformer: .*\n", error)
        assert "MINITRANSFORMER_TRACEBACK" not in error


@pytest.mark.parametrize("arguments", [
    *(["train", *more] for more in (["--resume", ""], ["no recipe", "--from", ""])),
    *(["train", "no recipe", f"--{name}", ""] for name in ("run-folder", "own", "epochs")),
    *(["train", "no recipe", f"--{name}="] for name in ("data-dir", "text", "kind", "device")),
    *([command, ""] for command in COMMANDS),
    *(["evaluate", "run", f"--{name}", ""] for name in ("split", "json", "output", "own")),
    *(["explore", "run", f"--{name}", ""] for name in ("output", "sentences", "own")),
    *(["check", "own", *more] for more in ([""], ["--file", ""])),
    ["translate", "run", "--attention", "", "a"],
    ["classify", "run", ""],
    ["compare", "run", "--alpha", "1", ""],
], ids=" ".join)  # fmt: skip
def test_an_empty_value_as_of_a_variable_that_is_not_set_is_refused(arguments, capsys):
    assert status_of(arguments) == 2
    assert ": '' is empty; give a value, or leave it out\n" in capsys.readouterr().err
