"""Puts the explorer's page of the toy translator beside the lessons, as ``explorer.html``."""

from pathlib import Path

from minitransformer.commands.explore import page_of
from minitransformer.run_folder import RunFolder

ROOT = Path(__file__).parents[2]


def write_explorer(app, exception):
    if exception is None:
        notebooks = sorted((ROOT / "lessons").glob("[0-9][0-9]_*.ipynb"))
        pages = {path.name[:2]: f"lessons/{path.stem}.html" for path in notebooks}
        page = page_of(RunFolder(ROOT / "runs/toy"), lessons=pages)
        (Path(app.outdir) / "explorer.html").write_bytes(page)


def setup(app):
    app.connect("build-finished", write_explorer)
    return {"parallel_read_safe": True}
