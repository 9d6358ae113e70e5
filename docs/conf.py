"""The site: the lessons as they were executed, and the API reference from the docstrings.

make site

or, where `minitransformer train toy` has run, `sphinx-build -n -W --keep-going docs build/site`. A
reference that leads nowhere is a warning after -n, and an error after -W.
"""

import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "minitransformer"
html_title = project
language = "en"

extensions = [
    "myst_nb",  # notebooks and Markdown
    "sphinx.ext.autodoc",  # docstrings,
    "sphinx.ext.napoleon",  # in Google's style,
    "docstrings",  # with formulas in them,
    "reference",  # a page for each room;
    "sphinx.ext.viewcode",  # and the code beside them
    "lessons",  # from ../lessons
    "explorer",  # of ../runs/toy
]
exclude_patterns = ["_ext", "lessons/cards.md"]

# Markdown and notebooks. They are stored with their outputs; nothing is executed here.
nb_execution_mode = "off"
nb_render_markdown_format = "myst"  # outputs too: tables, and formulas in them
nb_code_prompt_show, nb_code_prompt_hide = "Show the code", "Hide the code"  # of folded cells
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_dmath_allow_space = False  # as on GitHub
myst_heading_anchors = 3  # links to headings, as on GitHub

# The API reference: as the file has it, so that each backward stands beside its forward.
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": True, "ignore-module-all": True}
autodoc_preserve_defaults = True  # as written: the repr of a module names a folder
autodoc_typehints = "none"  # the docstrings say more
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]
add_module_names = False  # the heading has it
toc_object_entries_show_parents = "hide"

# How it looks.
html_theme = "furo"
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0072b2",  # the blue of the plots
        "color-brand-content": "#0072b2",
        "color-brand-visited": "#0072b2",
        "brightness-of-pictures": "100%",
    },
    "dark_css_variables": {
        "color-brand-primary": "#56b4e9",
        "color-brand-content": "#56b4e9",
        "color-brand-visited": "#56b4e9",
        "brightness-of-pictures": "85%",  # and not inverted, which would change what colours mean
    },
}
html_copy_source = False
html_use_index = html_domain_indices = False
html_show_copyright = False

# MathJax that draws outlines: one file, and no fonts, which a browser may refuse to read from disk.
MATHJAX = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent / "static/mathjax"
html_static_path = ["_static", str(MATHJAX / "tex-svg.js")]
html_css_files = ["site.css"]
mathjax_path = "tex-svg.js"
