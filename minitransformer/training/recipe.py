"""A recipe: everything that decides a training run, from TOML and the command line.

The recipes of the package are the files in ``recipes/`` beside this one.
"""

import tomllib
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from minitransformer.core.settings import require_kind, types_of
from minitransformer.models.registry import DEFAULT, KINDS, config_class
from minitransformer.tasks.settings import Data, RecipeError
from minitransformer.tasks.task import task_class
from minitransformer.training.config import CHOICES, TrainingConfig, training_fields

RECIPES = Path(__file__).parent / "recipes"
TOO_LARGE = 2**63  # for the whole numbers of TOML
# What may be another when a run goes on, beside the paths of its data.
UNBOUND = ("log_every", "save_every")
# What says which other fields there are, and where.
SAYS_WHAT_ELSE = ("model", "kind"), ("data", "corpus"), *(("training", name) for name in CHOICES)


@dataclass(frozen=True)
class Setting:
    """One field of a recipe: its section and the class that has it there, its type and default."""

    section: str
    of: type
    type: type
    default: object


@cache
def settings(kind=DEFAULT, **chosen):
    """All fields of a recipe for a model of that kind, by name; none stands in two sections.

    Args:
        chosen: as for :func:`training_fields`, whose options are among them.

    Raises:
        RecipeError: there is no such kind.
    """
    try:
        model = config_class(kind)
    except ValueError as error:
        raise RecipeError(str(error)) from error
    data = task_class(model).Data
    return {
        **_settings("data", ((f, data) for f in fields(data))),
        "kind": Setting("model", model, str, kind),
        **_settings("model", ((f, model) for f in model.choices())),
        **_settings("training", training_fields(**chosen)),
    }


def _settings(section, choices):
    return {f.name: Setting(section, of, types_of(of)[f.name], f.default) for f, of in choices}


def recipe_names():
    """Those of the package, in order."""
    return sorted(path.stem for path in RECIPES.glob("*.toml"))


def recipe_summary(name):
    """What a recipe of the package is, in the words of its first line, a comment."""
    with (RECIPES / f"{name}.toml").open(encoding="utf-8") as file:
        return file.readline().removeprefix("#").strip()


def _defaults(section, kind=DEFAULT):
    return {name: s.default for name, s in settings(kind).items() if s.section == section}


@dataclass(frozen=True)
class Recipe:
    """The three parts of a run.

    Attributes:
        data: the settings of the task of the model, a ``Task.Data``.
        model: its ``kind``, and the fields of that kind's configuration that do not depend on the
            data, as a dict.
        training: TrainingConfig.
    """

    data: Data = field(default_factory=lambda: task_class(config_class(DEFAULT)).Data())
    model: dict = field(default_factory=lambda: _defaults("model"))
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
            CheckpointError: as for :meth:`RunPaths.load_config`.
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
        first, values = {}, {}
        for section, name in SAYS_WHAT_ELSE:
            if isinstance(sections.get(section), dict) and name in sections[section]:
                first[name] = sections[section][name]
        recipe = recipe.with_values(first)
        known = recipe.settings()
        former = {"data": recipe.data.former, "training": recipe.training.former}
        for section, given in sections.items():
            if section not in recipe.as_dict() or not isinstance(given, dict):
                raise RecipeError(
                    f"{section!r} is no section; the sections are [data], [model] and [training]"
                )
            old = former.get(section, {})
            for name, value in given.items():
                empty = name not in known and name in old and value == old[name]
                if empty or (section, name) in SAYS_WHAT_ELSE:  # which were the first
                    continue
                actual = recipe._setting(name).section
                if actual != section:
                    raise RecipeError(f"[{section}] has no field {name}; move it to [{actual}]")
                values[name] = value
        return recipe.with_values(values)

    def with_value(self, name, value):
        """:meth:`with_values`, of one field."""
        return self.with_values({name: value})

    def with_values(self, values):
        """The recipe with these fields, by name, of whichever sections; first those that say
        which others there are.

        With another ``kind`` model and data have the defaults of that, but for what was chosen here
        and the other kind has, too; and so have data with another ``corpus``, and a training with
        another optimizer or schedule.

        Raises:
            RecipeError: there is no such field, or a value is of another type or out of range.
        """
        recipe, first = self, [name for _, name in SAYS_WHAT_ELSE if name in values]
        for name in dict.fromkeys([*first, *values]):
            try:
                recipe = recipe._replaced(name, values[name], values)
            except ValueError as error:
                raise RecipeError(str(error)) from error
        return recipe

    def _replaced(self, name, value, values):
        """The recipe with another value of one field, of all ``values`` that are being replaced."""
        setting = self._setting(name)
        if type(value) is int and abs(value) >= TOO_LARGE:
            raise RecipeError(f"{name} must be a number below 2**63, as all whole numbers in TOML")
        require_kind(name, value, setting.type)
        value = setting.type(value)
        if name == "kind":
            return self._of_kind(value, values)
        if name == "corpus":
            return replace(self, data=self.data.of_corpus(value))
        if setting.section == "model":
            return replace(self, model=self.model | {name: value})
        if setting.section == "training":
            return replace(self, training=self.training.with_value(name, value))
        return replace(self, data=replace(self.data, **{name: value}))

    def identity(self):
        """The fields that decide what a training comes to, by name, those of the model aside."""
        # As checkpoints of older releases note them, with the fields of all tasks and optimizers.
        sections = self.data.former | asdict(self.data)
        sections |= self.training.former | self.training.as_dict()
        unbound = {*UNBOUND, *self.data.paths}
        return {name: value for name, value in sections.items() if name not in unbound}

    def values(self):
        """Those of all fields, by name."""
        return asdict(self.data) | self.model | self.training.as_dict()

    def without_paths(self):
        """All but where the data are, which each machine may have elsewhere, by name."""
        return {n: value for n, value in self.values().items() if n not in self.data.paths}

    def choices(self):
        """The fields of the model's configuration that it has of the recipe, by name."""
        return {name: value for name, value in self.model.items() if name != "kind"}

    def model_config(self, **of_data):
        """The configuration of this recipe's kind of model.

        ``of_data`` are the fields that the data decide; see :meth:`Task.of_data`.

        Raises:
            ValueError: a field of the model makes no sense.
        """
        return config_class(self.model["kind"])(**self.choices(), **of_data)

    def as_dict(self):
        """All fields as a dict of dicts that :meth:`from_dict` reads."""
        return {
            "data": asdict(self.data),
            "model": dict(self.model),
            "training": self.training.as_dict(),
        }

    def as_toml(self):
        """All fields as TOML that :meth:`load` reads.

        Raises:
            RecipeError: a text is no Unicode.
        """
        lines = []
        for section, values in self.as_dict().items():
            lines += ["", f"[{section}]"]
            lines += [f"{name} = {_as_toml(name, value)}" for name, value in values.items()]
        return "\n".join(lines[1:])

    def settings(self):
        """As :func:`settings`, of this recipe's kind of model, optimizer and schedule."""
        return settings(self.model["kind"], **self.training.chosen())

    def _setting(self, name):
        known = self.settings()
        if name in known:
            return known[name]
        if useless := self.training.useless(name):
            raise RecipeError(useless)
        others = [kind for kind in KINDS if name in settings(kind)]
        if others:
            section, kind = settings(others[0])[name].section, self.model["kind"]
            of = dict.fromkeys(config_class(k).task if section == "data" else k for k in others)
            has = ", ".join(field for field in self.as_dict()[section] if field != "kind")
            raise RecipeError(
                f"a model of kind {kind!r} has no {name}, which is for {', '.join(of)}; leave it "
                f"out: [{section}] may have {has}"
            )
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"the fields are {', '.join(known)}"
        raise RecipeError(f"there is no field {name}; {hint}")

    def _of_kind(self, kind, values):
        """The recipe for another kind of model, with what is chosen here and is there, too.

        What is in ``values`` is left out: it follows.
        """
        parts = {}
        for section, ours in (("model", self.model), ("data", asdict(self.data))):
            before, after = (_defaults(section, of) for of in (self.model["kind"], kind))
            parts[section] = after | {
                name: value
                for name, value in ours.items()
                if name in after and name not in values and value != before[name]
            }
        data = task_class(config_class(kind)).Data(**parts["data"])
        return replace(self, data=data, model=parts["model"])


def _as_toml(name, value):
    """A value as TOML, in ASCII alone, so that any terminal and any editor leaves it as it is."""
    if not isinstance(value, str):
        return repr(value).lower()  # true and false; inf and other numbers are Python's
    if any("\ud800" <= c <= "\udfff" for c in value):
        raise RecipeError(f"{name}={value!r} is no Unicode and cannot be written as TOML")
    characters = (
        f"\\{c}" if c in '\\"' else c if " " <= c <= "~" else f"\\U{ord(c):08x}" for c in value
    )
    return f'"{"".join(characters)}"'
