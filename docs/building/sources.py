"""What is put under ``docs`` before Sphinx reads: the reference, the guides, the gallery."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphinx.util import logging

from docs.building import gallery, reference
from docs.building.pages import write_pages

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
_LOG = logging.getLogger(__name__)

# Where a file of the repository stands on the site; texts link to the files.
_PLACES = {
    r"(?:\.\./)?notebooks/(\w+)\.ipynb": r"/guides/\1.ipynb",
    r"(?:\.\./)?docs/([\w/]+\.md)": r"/\1",
    r"(?:\.\./)?PAPERS\.md": "/papers.md",
    r"(?:\.\./)?SECURITY\.md": "/security.md",
    r"(?:\.\./)?CHANGELOG\.md": "/changelog.md",
    r"(?:\.\./)?notebooks": "/guides.md",
}
_INCLUDED = re.compile(r"^```\{include\} (\S+)\n```$", re.MULTILINE)


def on_site(text: str) -> str:
    """Return the text of a page in which links to files of the repository lead to their pages."""
    for pattern, place in _PLACES.items():
        text = re.sub(rf"\]\({pattern}\)", rf"]({place})", text)
    return text


def _make(app: Sphinx) -> None:
    source = Path(app.srcdir)
    write_pages(source / "reference", reference.all_pages())
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    write_pages(source / "guides", {path.name: path.read_text("utf-8") for path in notebooks})
    given = str(app.config.experiments_run)
    folder = Path(given).resolve() if given else ROOT / "results"
    finished = bool(given) or gallery.finished(folder)
    if finished:
        _LOG.info("the gallery is that of the run in %s.", folder)
    else:
        _LOG.info("%s has no finished run: running the experiments.", folder)
        folder = Path(app.doctreedir) / "experiments"
    gallery.make(source / "gallery", folder, finished=finished)


def _read(app: Sphinx, docname: str, content: list[str]) -> None:
    """Put in the files that a page includes, since their links are to be changed, too."""

    def included(match: re.Match[str]) -> str:
        path = Path(app.srcdir, match[1]).resolve()
        app.env.note_dependency(path, docname=docname)
        return path.read_text(encoding="utf-8")

    content[0] = on_site(_INCLUDED.sub(included, content[0]))


def setup(app: Sphinx) -> dict[str, Any]:
    """Make the pages once Sphinx knows where they go."""
    app.add_config_value("experiments_run", "", "env", str)
    app.connect("builder-inited", _make)
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
