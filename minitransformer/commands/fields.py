"""The fields of a recipe as options of the command line, described by their docstrings."""

import argparse
import re
import textwrap
from functools import cache

from minitransformer.models.registry import DEFAULT, KINDS, config_class
from minitransformer.tasks.task import TASKS
from minitransformer.training.recipe import settings

METAVARS = {int: "N", float: "X", str: "TEXT"}
ABOUT = (
    "The fields of this section, which replace those of the recipe. The defaults are for what a "
    "recipe leaves open."
)


def add_fields(parser):
    """Add an option for each field of each kind of model, in a group for each section.

    Those of data stand in groups by the tasks that have them.
    """
    groups = {}
    for section in ("data", "model", "training"):
        for name, kinds in _fields(section).items():
            setting, *_ = kinds.values()
            title, about, tasks = f"[{section}]", ABOUT, _by_task(kinds)
            if section == "data" and len(tasks) < len(TASKS):
                title, about = f"{title} for {', '.join(tasks)}", None
            if title not in groups:
                groups[title] = parser.add_argument_group(title, about)
            flag = {"type": setting.type, "metavar": METAVARS.get(setting.type)}
            if setting.type is bool:
                flag = {"action": argparse.BooleanOptionalAction}
            groups[title].add_argument(
                "--" + name.replace("_", "-"), **flag, help=_help(name, kinds)
            )


def chosen_fields(options):
    """The values of the fields that are given, by name."""
    first = ["kind", "corpus"]  # which say what others there are
    names = [*first, *(name for name in _fields() if name not in first)]
    given = {name: getattr(options, name) for name in names}
    return {name: value for name, value in given.items() if value is not None}


def _fields(section=None):
    """The fields of a section, or of all, by name: for each kind of model that has it, a Setting.

    An option of another kind than the recipe's is refused when that is known.
    """
    found = {}
    for kind in KINDS:
        for name, setting in settings(kind).items():
            if section in (None, setting.section):
                found.setdefault(name, {})[kind] = setting
    return found


def _help(name, kinds):
    if name == "kind":
        return f"which model: {', '.join(kinds)} (default: {DEFAULT})"
    setting, *_ = kinds.values()
    of_data = setting.section == "data"
    if of_data:
        kinds = _by_task(kinds)
    described = {}  # the kinds, or the tasks, of which each description holds
    for kind, of_kind in kinds.items():
        description = _descriptions(of_kind.of).get(name, "")
        described.setdefault(description, []).append(kind)
    if len(described) > 1:
        description = "; ".join(f"{', '.join(of)}: {words}" for words, of in described.items())
    elif len(kinds) < len(KINDS) and not of_data:
        description += f"; of {', '.join(kinds)}"
    if setting.default == "":
        return description
    defaults = {}  # the kinds that have each default
    for kind, of_kind in kinds.items():
        defaults.setdefault(of_kind.default, []).append(kind)
    if len(defaults) == 1:
        return f"{description} (default: {setting.default})"
    each = "; ".join(f"{default} for {', '.join(of)}" for default, of in defaults.items())
    return f"{description} (default: {each})"


def _by_task(kinds):
    """A Setting for each task in place of those for each kind of model."""
    return {config_class(kind).task: setting for kind, setting in kinds.items()}


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
