"""The pages of a folder, written from what it keeps of every experiment."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from PIL import Image

from experiments.catalogue import all_experiments
from experiments.kept import Entry, kept_entry, renew
from experiments.registry import VERDICTS
from experiments.report import views
from experiments.report.mathematics import to_mathml


def write_report(entries: Sequence[Entry], folder: Path) -> Path:
    """Write ``index.html`` and a page for each item that the folder keeps.

    A page holds its own style and script; it asks for nothing but the figures beside it. A page
    that would not change is left alone, so that running one experiment renews its page and the
    index only.
    """
    shown = _merged(entries, folder)
    sizes = {entry.experiment.name: _size(folder, entry) for entry in shown}
    pages = environment(Path(__file__).parent, autoescape=True)
    pages.globals.update(views=views, verdicts=VERDICTS)
    pages.filters.update(mathml=to_mathml, breakable=_breakable)
    # A run into another folder is made again there, beside what stands in the usual one. A page
    # tells no path of the machine.
    usual = folder == Path("results") or folder.is_absolute()
    pages.globals["out"] = "" if usual else f" --out {shlex.quote(str(folder))}"
    item = pages.get_template("item.html")
    neighbours = zip(shown, [None, *shown], [*shown[1:], None], strict=False)
    for entry, before, after in neighbours:
        name = entry.experiment.name
        text = item.render(entry=entry, size=sizes[name], before=before, after=after)
        renew(folder / f"{name}.html", text.encode())
    index = folder / "index.html"
    text = pages.get_template("index.html").render(entries=shown, sizes=sizes)
    renew(index, text.encode())
    return index


def environment(folder: Path, *, autoescape: bool = False) -> Environment:
    """Return what renders the templates of a folder; they name nothing that is not there."""
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _breakable(name: str) -> Markup:
    """Return a long name that may break, so that its column is as narrow as its numbers allow."""
    return Markup("_<wbr>").join(name.split("_"))


def _merged(entries: Sequence[Entry], folder: Path) -> list[Entry]:
    """Return the entries of this run and those that the folder keeps, in the registry's order."""
    by_name = {entry.experiment.name: entry for entry in entries}
    known = all_experiments()
    found = [by_name.get(name) or kept_entry(known[name], folder) for name in known]
    others = [entry for name, entry in by_name.items() if name not in known]
    return [entry for entry in found if entry is not None] + others


def _size(folder: Path, entry: Entry) -> tuple[int, int] | None:
    """Return width and height of an item's picture; None if it has none, such as after a failure.

    A page that knows them does not move under its reader while the picture loads.
    """
    if entry.outcome is None:
        return None
    try:
        with Image.open(folder / f"{entry.experiment.name}.png") as picture:
            return picture.size
    except OSError:
        return None
