"""Puts the explorer's page of the toy translator beside the lessons, as ``explorer.html``.

Without a run to show, which ``make site`` trains, there is no page but a warning, an error after
``-W``.
"""

from pathlib import Path

from sphinx.util import logging

from minitransformer.commands.explore import page_of
from minitransformer.runs.checkpoint.file import CheckpointError
from minitransformer.runs.run_folder import RunFolder

ROOT = Path(__file__).parents[2]


def write_explorer(app, exception):
    if exception is None:
        notebooks = sorted((ROOT / "lessons").glob("[0-9][0-9]_*.ipynb"))
        pages = {path.name[:2]: f"lessons/{path.stem}.html" for path in notebooks}
        try:
            page = page_of(RunFolder(ROOT / "runs/toy"), lessons=pages)
        except CheckpointError as error:
            logging.getLogger(__name__).warning(
                "the site has no explorer.html: %s; minitransformer train toy makes it", error
            )
            return
        (Path(app.outdir) / "explorer.html").write_bytes(page)


def setup(app):
    app.connect("build-finished", write_explorer)
    return {"parallel_read_safe": True}
