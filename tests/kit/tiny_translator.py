"""A translator trained on 72 captions, all of which it knows by heart, made by the command line."""

from itertools import product

from minitransformer.commands.cli import main

SUBJECTS = {"ein Hund": "a dog", "eine Frau": "a woman", "das Kind": "the child", "wir": "we"}
VERBS = {"läuft": "runs", "schläft": "sleeps", "singt": "sings"}
PLACES = {"im Park": "in the park", "am Strand": "on the beach", "zu Hause": "at home"}
TIMES = {"heute": "today", "": ""}

RECIPE = """
[data]
corpus = "files"
train_source = "{folder}/train.de"
train_target = "{folder}/train.en"
validation_source = "{folder}/validation.de"
validation_target = "{folder}/validation.en"
vocabulary_size = 80

[model]
d_model = 32
num_heads = 2
d_ff = 64
num_encoder_layers = 1
num_decoder_layers = 1
dropout = 0.0
norm = "pre"
max_length = 40

[training]
epochs = 14
batch_tokens = 256
peak_learning_rate = 1e-2
warmup_steps = 20
average = 2
log_every = 1
seed = 1
"""


def status_of(arguments):
    """What a command line ends with."""
    try:
        return main(arguments)
    except SystemExit as ended:
        return ended.code


def captions():
    """All (German, English) there are: heute läuft ein Hund im Park, a dog runs in the park today.

    With a word for the time in front, the verb comes second.
    """
    pairs = []
    for subject, verb, place, time in product(SUBJECTS, VERBS, PLACES, TIMES):
        german = [time, verb, subject, place] if time else [subject, verb, place]
        english = [SUBJECTS[subject], VERBS[verb], PLACES[place], TIMES[time]]
        pairs.append((" ".join(german), " ".join(english).strip()))
    return pairs


def write_recipe(folder):
    """Write the corpus and a TOML file for it into ``folder``; returns the path of the latter."""
    pairs = captions()
    for split, part in {"train": pairs, "validation": pairs[::9]}.items():
        for side, language in enumerate(("de", "en")):
            lines = "".join(f"{pair[side]}\n" for pair in part)
            (folder / f"{split}.{language}").write_text(lines, encoding="utf-8")
    recipe = folder / "captions.toml"
    recipe.write_text(RECIPE.format(folder=folder.as_posix()), encoding="utf-8")
    return recipe


def train_once(tmp_path_factory):
    """The folder of a whole run, the same one in all of a session's tests."""
    folder = tmp_path_factory.getbasetemp() / "tiny translator"
    if not folder.exists():
        folder.mkdir()
        recipe = write_recipe(folder)
        assert main(["train", str(recipe), "--run-folder", str(folder / "run")]) == 0
    return folder / "run"
