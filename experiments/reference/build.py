"""Build the reference into a folder, whole or not at all."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from dpopt import DpoptError, ParameterError
from experiments.reference.pages import all_pages

_MARK = "objects.inv"


def build(out: Path) -> Path:
    """Build the HTML reference; return the path of its first page.

    Args:
        out: the folder; an earlier reference there is replaced.

    Raises:
        ParameterError: if ``out`` is a file, or a folder with something else in it.
        DpoptError: if Sphinx is not installed, or warns of anything.
    """
    try:
        from sphinx.cmd.build import build_main  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise DpoptError(
            "the reference needs Sphinx; install it with pip install 'dpopt[docs]'."
        ) from None
    if out.exists() and not (out / _MARK).is_file() and not _is_empty(out):
        raise ParameterError(f"out is {str(out)!r}; it must be a new folder, or a reference's.")
    with TemporaryDirectory() as name:
        source, pages = Path(name, "source"), Path(name, "pages")
        source.mkdir()
        for page, text in all_pages().items():
            (source / f"{page}.rst").write_text(text, encoding="utf-8")
        arguments = ["-b", "html", "-q", "-W", "--keep-going", "-c", str(Path(__file__).parent)]
        if build_main([*arguments, "-d", str(Path(name, "trees")), str(source), str(pages)]):
            raise DpoptError("Sphinx warned of the lines above; the reference was not written.")
        if out.exists():
            shutil.rmtree(out)
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(pages, out)
    return out / "index.html"


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())
