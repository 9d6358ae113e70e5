"""Makes reStructuredText of what the package's docstrings leave to the reader's eye.

- Formulas and examples stand indented, between empty lines: they are kept as they are.
- ``Returns:`` says what, and no types.
- A bar is a bar, as in ``|Y|``.
- A name means what it means in its module: :func:`dropout` where ``dropout`` is imported.
- A package lists the names that it gives, ``__all__``, and where each comes from.
"""

import importlib
import re

METHODS = classmethod, staticmethod, property


def as_restructured_text(app, what, name, obj, options, lines):
    text, in_block, last = [], False, ""  # the last line that was not empty
    for line in lines:
        if line and not line.startswith(" "):
            in_block = False
        elif line and not in_block and not text[-1] and not last.startswith(" "):
            in_block = True
            text += ["::", ""]
        text.append(line if in_block else _escaped(line))
        last = line or last
    lines[:] = _with_returns("\n".join(text)).split("\n")


def _with_returns(text):
    """``Returns:`` as a field; napoleon would take for a type what stands before a colon."""
    section = re.compile(r"^Returns:\n((?:    .*\n?|\n)+)", re.MULTILINE)
    return section.sub(lambda found: f":returns:\n{found[1]}", text)


def _escaped(line):
    """The line with its bars escaped, except in ````code````."""
    pieces = re.split(r"(``.*?``)", line)
    return "".join(p if p.startswith("``") else p.replace("|", r"\|") for p in pieces)


def with_names(app, what, name, obj, options, lines):
    if what == "module" and hasattr(obj, "__path__") and hasattr(obj, "__all__"):
        names = ", ".join(_link(each, getattr(obj, each)) for each in obj.__all__)
        lines += ["", f"``from {name} import`` {names}", ""]


def _link(name, thing):
    return f":py:obj:`{name}`" if hasattr(thing, "__name__") else f"``{name}``"


def without_noise(app, what, name, obj, skip, options):
    """Leave out twins, whose references are documented, and fields, which their class describes."""
    is_twin = getattr(obj, "__doc__", None) == "As the reference."
    is_field = what == "class" and not (callable(obj) or isinstance(obj, METHODS))
    return True if is_twin or is_field else None


def as_named_here(app, env, node, contnode):
    """Where a name leads: what it means in the class and module that mention it, or anywhere."""
    if node.get("refdomain") != "py" or not node.get("py:module"):
        return None
    module = importlib.import_module(node["py:module"])
    own_class = getattr(module, node.get("py:class") or "", None)
    domain, target = env.get_domain("py"), node["reftarget"]
    thing = getattr(own_class, target, None) or getattr(module, target, None)
    if hasattr(thing, "__qualname__"):
        target = f"{thing.__module__}.{thing.__qualname__}"
    node["refspecific"] = True
    return domain.resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], target, node, contnode
    )


def setup(app):
    app.connect("autodoc-process-docstring", as_restructured_text, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", with_names, priority=600)
    app.connect("autodoc-skip-member", without_noise)
    app.connect("missing-reference", as_named_here)
    return {"parallel_read_safe": True}
