"""A recipe: everything that decides a training run, from TOML and the command line.

The recipes of the package are the files in ``recipes/`` beside this one.
"""

import tomllib
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import get_type_hints

from minitransformer.core.errors import InputError
from minitransformer.models.registry import DEFAULT, KINDS, config_class
from minitransformer.training.config import TrainingConfig

RECIPES = Path(__file__).parent / "recipes"
CORPORA = ("toy", "multi30k", "files", "text", "labelled")
UNITS = ("subwords", "characters")
TOO_LARGE = 2**63  # for the whole numbers of TOML
PATHS = (
    "train_source",
    "train_target",
    "validation_source",
    "validation_target",
    "data_dir",
    "text",
    "labelled",
)
# What may be another when a run goes on: where its text is, what is logged and saved on the way.
UNBOUND = (*PATHS, "log_every", "save_every")


class RecipeError(InputError):
    """No such recipe, or a field of it does not exist or has a value that makes no sense."""


@dataclass(frozen=True)
class DataConfig:
    """The text that is learned from.

    Attributes:
        corpus: ``"toy"``, ``"multi30k"``, ``"files"`` for the four paths below, ``"text"`` for one
            file that a language model learns from, or ``"labelled"`` for one that a tagger does.
        languages: source and target: two of de, en, fr and cs for Multi30k, de and en for toy.
        train_source, train_target: text to train on: files, one sentence a line, plain or .gz.
        validation_source, validation_target: the same for the text that chooses the epoch.
        data_dir: folder with a local copy of Multi30k; empty for a download.
        text: a text file, plain or .gz, whose last tenth chooses the epoch.
        labelled: a file of labels, plain or .gz, whose last tenth chooses the epoch: word, tab and
            label in a line, and a blank line between sentences; or, without blank lines, label, tab
            and sentence.
        labels: of the toy corpus: ``"part-of-speech"``, ``"case"`` or ``"number"`` of each word, or
            the ``"tense"`` of each sentence.
        labelled_share: how much of the training sentences a tagger is given the labels of, drawn
            by the seed; all of a smaller share are in a larger one.
        unit: of which texts are made: ``"subwords"`` or ``"characters"``.
        vocabulary_size: subwords, shared by both languages; of characters all have an id.
        max_tokens: longest side, in subwords and the end symbol, of a training pair; pairs with a
            longer one are left out. The model's max_length, where smaller, counts instead.

    Raises:
        ValueError: a field makes no sense.
    """

    corpus: str = "multi30k"
    languages: str = "de-en"
    train_source: str = ""
    train_target: str = ""
    validation_source: str = ""
    validation_target: str = ""
    data_dir: str = ""
    text: str = ""
    labelled: str = ""
    labels: str = ""
    labelled_share: float = 1.0
    unit: str = "subwords"
    vocabulary_size: int = 8000
    max_tokens: int = 256

    def require_text(self):
        """Raise a RecipeError where a text file is to be learned from, and none is named."""
        if self.corpus == "text" and not self.text:
            raise RecipeError("corpus='text' needs a text file: --text FILE")
        if self.corpus == "labelled" and not self.labelled:
            raise RecipeError("corpus='labelled' needs a file of labels: --labelled FILE")

    def require_no_labels(self):
        """Raise a RecipeError where labels are chosen, for whoever learns from text alone."""
        for name in ("labelled", "labels", "labelled_share"):
            value = getattr(self, name)
            if value != getattr(DataConfig, name):
                raise RecipeError(
                    f"{name}={value!r} is for a tagger; leave it out, or take the recipe tagger"
                )
        if self.corpus == "labelled":
            raise RecipeError("corpus='labelled' is for a tagger; take the recipe tagger")

    def __post_init__(self):
        if self.corpus not in CORPORA:
            raise InputError(f"corpus={self.corpus!r}; choose {_listed(CORPORA)}")
        if self.unit not in UNITS:
            raise InputError(f"unit={self.unit!r}; choose 'subwords' or 'characters'")
        for name in ("vocabulary_size", "max_tokens"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name}={getattr(self, name)!r} must be > 0")
        if not 0 < self.labelled_share <= 1:
            raise InputError(f"labelled_share={self.labelled_share!r} must lie in 0 < share <= 1")


def _listed(names):
    """Such as "'one', 'two' or 'three'"."""
    *others, last = map(repr, names)
    return f"{', '.join(others)} or {last}"


@dataclass(frozen=True)
class Setting:
    """One field of a recipe: its section, type and default."""

    section: str
    type: type
    default: object


@cache
def settings(kind=DEFAULT):
    """All fields of a recipe for a model of that kind, by name; none stands in two sections.

    Raises:
        RecipeError: there is no such kind.
    """
    try:
        model = config_class(kind)
    except ValueError as error:
        raise RecipeError(str(error)) from error
    return {
        **_settings("data", DataConfig, fields(DataConfig)),
        "kind": Setting("model", str, kind),
        **_settings("model", model, model.choices()),
        **_settings("training", TrainingConfig, fields(TrainingConfig)),
    }


def _settings(section, config, choices):
    types = get_type_hints(config)
    return {f.name: Setting(section, types[f.name], f.default) for f in choices}


def recipe_names():
    """Those of the package, in order."""
    return sorted(path.stem for path in RECIPES.glob("*.toml"))


def recipe_summary(name):
    """What a recipe of the package is, in the words of its first line, a comment."""
    with (RECIPES / f"{name}.toml").open(encoding="utf-8") as file:
        return file.readline().removeprefix("#").strip()


def _model_defaults(kind=DEFAULT):
    return {name: s.default for name, s in settings(kind).items() if s.section == "model"}


@dataclass(frozen=True)
class Recipe:
    """The three parts of a run.

    Attributes:
        data: DataConfig.
        model: its ``kind``, and the fields of that kind's configuration that do not depend on the
            vocabulary, as a dict.
        training: TrainingConfig.
    """

    data: DataConfig = field(default_factory=DataConfig)
    model: dict = field(default_factory=_model_defaults)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    @classmethod
    def load(cls, name):
        """A recipe of the package by its name, or any other TOML file by its path.

        Raises:
            RecipeError: there is neither, or the file is no recipe.
        """
        names = recipe_names()
        path = RECIPES / f"{name}.toml" if str(name) in names else Path(name)
        if not path.is_file():
            close = get_close_matches(str(name), names, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise RecipeError(
                f"there is no file {str(name)!r}, and the recipes of the package are "
                f"{', '.join(names)}{hint}"
            )
        try:
            # Without the byte order mark that some editors write.
            sections = tomllib.loads(path.read_text(encoding="utf-8-sig"))
            if not sections:  # where another program failed to write into it
                raise RecipeError("it is empty; to take the defaults, write [training]")
            return cls.from_dict(sections)
        except RecursionError as error:
            raise RecipeError(f"{path}: too many brackets within each other") from error
        except ValueError as error:
            raise RecipeError(f"{path}: {error}") from error

    @classmethod
    def of_run(cls, run):
        """That of a RunFolder.

        Raises:
            RecipeError: its configuration has none.
            CheckpointError: as for :meth:`RunFolder.load_config`.
        """
        _, sections = run.load_config()
        try:
            return cls.from_dict(sections)
        except RecipeError as error:
            raise RecipeError(f"{run.config}: {error}") from error

    @classmethod
    def from_dict(cls, sections):
        """From ``{"data": {...}, "model": {...}, "training": {...}}``; the rest is as by default.

        Raises:
            RecipeError: a section or field does not exist, or a value makes no sense.
        """
        recipe = cls()
        if not isinstance(sections, dict):
            raise RecipeError(f"a recipe has sections, and {sections!r} has none")
        for section, values in sections.items():
            if section not in recipe.as_dict() or not isinstance(values, dict):
                raise RecipeError(
                    f"{section!r} is no section; the sections are [data], [model] and [training]"
                )
            if "kind" in values:  # which says what else there can be
                recipe = recipe.with_value("kind", values["kind"])
            for name, value in values.items():
                actual = recipe._setting(name).section
                if actual != section:
                    raise RecipeError(f"[{section}] has no field {name}; move it to [{actual}]")
                recipe = recipe.with_value(name, value)
        return recipe

    def with_value(self, name, value):
        """The recipe with one field, of whichever section, replaced.

        With another ``kind`` the model has the defaults of that, but for what was chosen here and
        the other kind has, too.

        Raises:
            RecipeError: there is no such field, or the value is of another type or out of range.
        """
        setting = self._setting(name)
        if type(value) is int and abs(value) >= TOO_LARGE:
            raise RecipeError(f"{name} must be a number below 2**63, as all whole numbers in TOML")
        if setting.type is float and type(value) is int:
            value = float(value)
        if type(value) is not setting.type:
            raise RecipeError(
                f"{name}={value!r} is of type {type(value).__name__}; "
                f"give one of type {setting.type.__name__}, such as {setting.default!r}"
            )
        if name == "kind":
            return replace(self, model=self._model_of_kind(value))
        if setting.section == "model":
            return replace(self, model=self.model | {name: value})
        try:
            section = replace(getattr(self, setting.section), **{name: value})
        except ValueError as error:
            raise RecipeError(str(error)) from error
        return replace(self, **{setting.section: section})

    def value(self, name):
        """The value of a field, of whichever section.

        Raises:
            RecipeError: there is no such field.
        """
        return self.as_dict()[self._setting(name).section][name]

    def identity(self):
        """The fields that decide what a training comes to, by name, those of the model aside."""
        sections = asdict(self.data) | asdict(self.training)
        return {name: value for name, value in sections.items() if name not in UNBOUND}

    def without_paths(self):
        """All fields by name, but for where the text is, which each machine may have elsewhere."""
        fields = asdict(self.data) | self.model | asdict(self.training)
        return {name: value for name, value in fields.items() if name not in PATHS}

    def model_config(self, vocabulary_size, **of_data):
        """The configuration of this recipe's kind of model, for a shared vocabulary.

        ``of_data`` are the fields that the examples decide; see :meth:`Task.of_data`.

        Raises:
            ValueError: a field of the model makes no sense.
        """
        choices = {name: value for name, value in self.model.items() if name != "kind"}
        return config_class(self.model["kind"]).of_vocabulary(vocabulary_size, **choices, **of_data)

    def longest_side(self):
        """The most tokens, with the end symbol, that a side of a training pair may have.

        Raises:
            RecipeError: a pair of two such sides would be larger than a batch. It is of no use
                that no pair is so long: subword dropout makes a text longer in some epoch.
        """
        longest = min(self.data.max_tokens, self.model["max_length"])
        batch_tokens = self.training.batch_tokens
        if 2 * longest > batch_tokens:
            raise RecipeError(
                f"a pair may have {longest} tokens on each side, and a batch has "
                f"batch_tokens={batch_tokens} for both sides; raise batch_tokens to {2 * longest} "
                f"or lower max_tokens to {batch_tokens // 2}"
            )
        return longest

    def require_rows(self, framed=False):
        """Refuse what does not go with rows of one text each, ``max_length`` tokens at most.

        Args:
            framed: whether two of these are the symbols for beginning and end.

        Raises:
            RecipeError: a row may be larger than a batch, or has room for no text; or a field is
                for pairs alone.
        """
        longest, batch_tokens = self.model["max_length"], self.training.batch_tokens
        if self.training.subword_dropout:
            raise RecipeError("subword_dropout is for translators; leave it out")
        if longest > batch_tokens:
            raise RecipeError(
                f"a row may have max_length={longest} tokens, and a batch has "
                f"batch_tokens={batch_tokens}; raise batch_tokens"
            )
        if framed and longest < 3:
            raise RecipeError(
                f"max_length={longest} leaves no room between the symbols for the beginning and "
                "the end of a sentence; choose 3 or more"
            )

    def as_dict(self):
        """All fields as a dict of dicts that :meth:`from_dict` reads."""
        return {
            "data": asdict(self.data),
            "model": dict(self.model),
            "training": asdict(self.training),
        }

    def settings(self):
        """As :func:`settings`, of this recipe's kind of model."""
        return settings(self.model["kind"])

    def _setting(self, name):
        known = self.settings()
        if name in known:
            return known[name]
        if any(name in settings(kind) for kind in KINDS):
            has = ", ".join(field for field in self.model if field != "kind")
            raise RecipeError(f"a model of kind {self.model['kind']!r} has no {name}; it has {has}")
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"the fields are {', '.join(known)}"
        raise RecipeError(f"there is no field {name}; {hint}")

    def _model_of_kind(self, kind):
        defaults = _model_defaults(kind)
        before = _model_defaults(self.model["kind"])
        chosen = {
            name: value
            for name, value in self.model.items()
            if name in defaults and name != "kind" and value != before[name]
        }
        return defaults | chosen
