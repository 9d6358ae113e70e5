"""Adds to ``api/index`` what is on each page of the reference: its modules, and what each is."""

import importlib
import re
from pathlib import Path


def with_overview(app, docname, source):
    if docname != "api/index":
        return
    for page in re.findall(r"^   (\w+)$", source[0], re.MULTILINE):  # of its toctree
        text = (Path(app.srcdir) / "api" / f"{page}.rst").read_text(encoding="utf-8")
        title = text.partition("\n")[0]
        source[0] += f"\n{title}\n{'-' * len(title)}\n\n"
        for module in documented_modules(text):
            name = module.removeprefix("minitransformer.")
            source[0] += f":py:mod:`{name} <{module}>`\n   {summary(module)}\n"


def documented_modules(page):
    """The names of the modules that a page of the reference documents."""
    return re.findall(r"^\.\. automodule:: (\S+)$", page, re.MULTILINE)


def summary(module):
    """The first paragraph of a module's docstring, in one line."""
    return " ".join(importlib.import_module(module).__doc__.partition("\n\n")[0].split())


def setup(app):
    app.connect("source-read", with_overview)
    return {"parallel_read_safe": True}
