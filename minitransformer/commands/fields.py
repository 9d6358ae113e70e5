"""The fields of a recipe as options of the command line, described by their docstrings."""

import argparse
import re
import textwrap
from functools import cache

from minitransformer.models.registry import DEFAULT, KINDS, config_class
from minitransformer.tasks.task import TASKS, task_class
from minitransformer.training.config import CHOICES, TrainingConfig, settings_of
from minitransformer.training.recipe import settings

METAVARS = {int: "N", float: "X", str: "TEXT"}
ABOUT = (
    "The fields of this section, which replace those of the recipe. The defaults are for what a "
    "recipe leaves open."
)


def add_fields(parser):
    """Add an option for each field of each kind of model, in a group for each section.

    Those of data stand in groups by the tasks that have them, and those of optimizers and schedules
    by these.
    """
    groups = {}
    for section in ("data", "model", "training"):
        for name, users in _fields(section).items():
            setting, *_ = users.values()
            title, about = f"[{section}]", ABOUT
            if (section == "data" and len(users) < len(TASKS)) or _is_option(setting):
                title, about = f"{title} for {', '.join(users)}", None
            if title not in groups:
                groups[title] = parser.add_argument_group(title, about)
            flag = {"type": setting.type, "metavar": METAVARS.get(setting.type)}
            if setting.type is bool:
                flag = {"action": argparse.BooleanOptionalAction}
            groups[title].add_argument(
                "--" + name.replace("_", "-"), **flag, help=_help(name, users)
            )


def chosen_fields(options):
    """The values of the fields that are given, by name."""
    given = {name: getattr(options, name) for name in _fields()}
    return {name: value for name, value in given.items() if value is not None}


def path_fields():
    """The names of those that say where data are, which may be elsewhere when a run goes on."""
    return {path for kind in KINDS for path in task_class(config_class(kind)).Data.paths}


def _fields(section=None):
    """The fields of a section, or of all, by name: a Setting for each user, by its name.

    Users are the kinds of models that have the field; of data their tasks, and of an option the
    optimizers or schedules. What another one has than that of the recipe is refused when that is
    known.
    """
    found = {}
    for kind in KINDS:
        for name, setting in settings(kind).items():
            if section in (None, setting.section) and not _is_option(setting):
                user = config_class(kind).task if setting.section == "data" else kind
                found.setdefault(name, {})[user] = setting
    for choice, (names, _) in CHOICES.items() if section in (None, "training") else ():
        for user in names:
            for name, setting in settings(**{choice: user}).items():
                if setting.of is settings_of(choice, user):
                    found.setdefault(name, {})[user] = setting
    return found


def _is_option(setting):
    """Whether it is of an optimizer or a schedule."""
    return setting.section == "training" and setting.of is not TrainingConfig


def _help(name, kinds):
    if name == "kind":
        return f"which model: {', '.join(kinds)} (default: {DEFAULT})"
    setting, *_ = kinds.values()
    described = {}  # the kinds, or the tasks, of which each description holds
    for kind, of_kind in kinds.items():
        description = _descriptions(of_kind.of).get(name, "")
        described.setdefault(description, []).append(kind)
    if len(described) > 1:
        description = "; ".join(f"{', '.join(of)}: {words}" for words, of in described.items())
    elif setting.section == "model" and len(kinds) < len(KINDS):
        description += f"; of {', '.join(kinds)}"
    elif name in CHOICES:
        names, _ = CHOICES[name]
        description += f": {', '.join(names)}"
    if setting.default == "":
        return description
    defaults = {}  # the kinds that have each default
    for kind, of_kind in kinds.items():
        defaults.setdefault(of_kind.default, []).append(kind)
    if len(defaults) == 1:
        return f"{description} (default: {setting.default})"
    each = "; ".join(f"{default} for {', '.join(of)}" for default, of in defaults.items())
    return f"{description} (default: {each})"


@cache
def _descriptions(config):
    """What the docstrings of a dataclass and its bases say about each of its attributes."""
    descriptions = {}
    for cls in reversed(config.__mro__):
        attributes = (cls.__doc__ or "").partition("Attributes:\n")[2].partition("\n\n")[0]
        for entry in re.split(r"\n(?! )", textwrap.dedent(attributes)):
            names, _, description = entry.partition(": ")
            for name in names.split(", "):
                words = " ".join(description.split()).rstrip(".")
                descriptions[name] = words.replace("``", "").replace("%", "%%")
    return descriptions
