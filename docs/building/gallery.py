"""The gallery: a page for each figure, and one with all of them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from PIL import Image
from sphinx.errors import ExtensionError

from docs.building.pages import write_pages
from experiments.catalogue import all_experiments
from experiments.kept import last_seconds
from experiments.parameters import parameters_of, text_of
from experiments.registry import Experiment

ROOT = Path(__file__).resolve().parents[2]
# Pixels of a picture that its card shows, from the upper left: all of it could not be read there.
_SEEN = (1000, 750)
# How to draw one's own, for any of them.
_TURNING = """\
To turn one, set its parameters; `--style` is the width and the fonts of a venue:

```sh
python -m experiments show majority-figure-2
python -m experiments run majority-figure-2 --set voters=15 --style neurips --out mine
```

The same from Python, as tables and a matplotlib figure:

```python
import experiments

run = experiments.run("majority-figure-2", voters=15)
run.figure("neurips").savefig("figure.pdf")
```""".splitlines()
_CODE = re.compile(r"(`[^`]+`)")


def make(folder: Path, run: Path, *, finished: bool) -> None:
    """Write the gallery from a run of the experiments.

    Args:
        folder: of the pages and pictures.
        run: what ``python -m experiments`` wrote, or is to write here.
        finished: whether it has been written already.
    """
    shown = _shown()
    if not finished:
        _run(run)
    pictures = _pictures(shown, run)
    missing = [path.name for path in pictures if not path.is_file()]
    if missing:
        raise ExtensionError(f"the run of the experiments lacks {', '.join(missing)}.")
    pages = {f"{each.name}.md": _page(each) for each in shown}
    write_pages(folder, {"index.md": _index(shown), **pages})
    beside = folder / "pictures"
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    for path in pictures:
        shutil.copy2(path, beside)
        if path.suffix == ".png":
            with Image.open(path) as whole:
                size = (min(whole.width, _SEEN[0]), min(whole.height, _SEEN[1]))
                whole.crop((0, 0, *size)).save(beside / f"{path.stem}-part.png")


def finished(run: Path) -> bool:
    """Whether a folder holds the default run of every experiment, with its pictures."""
    shown = _shown()
    ran = all(last_seconds(each, each.quick, run) is not None for each in shown)
    return ran and all(path.is_file() for path in _pictures(shown, run))


def _shown() -> list[Experiment]:
    return [each for each in all_experiments().values() if each.repeatable]


def _pictures(shown: Sequence[Experiment], run: Path) -> list[Path]:
    return [run / f"{each.name}.{kind}" for each in shown for kind in ("png", "pdf")]


def _run(folder: Path) -> None:
    """Run the default experiments; the runner keeps what has not changed."""
    command = [sys.executable, "-m", "experiments", "--out", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ExtensionError(f"the experiments failed.\n{done.stderr}")


def _index(shown: Sequence[Experiment]) -> str:
    lines = [
        "# Gallery",
        "",
        "Every figure of the papers that the package reproduces, and some that they lack. Each has",
        "a page with the command that draws it, what can be set, and the figure as PDF for print.",
        "",
        *_TURNING,
        "",
    ]
    for paper, group in groupby(shown, key=lambda each: each.paper):
        listed = list(group)
        lines += [f"## {paper}", "", "::::{grid} 1 1 2 2", ":gutter: 3", ""]
        for each in listed:
            lines += [
                f":::{{grid-item-card}} {plain(each.item)}",
                f":link: {each.name}",
                ":link-type: doc",
                f":img-top: pictures/{each.name}-part.png",
                f":img-alt: {plain(each.item)}",
                "",
                plain(_sentence(each.summary)),
                ":::",
                "",
            ]
        lines += ["::::", "", "```{toctree}", ":hidden:", ""]
        lines += [f"{paper}, {each.item} <{each.name}>" for each in listed]
        lines += ["```", ""]
    return "\n".join(lines)


def _page(experiment: Experiment) -> str:
    name = experiment.name
    lines = [
        f"# {plain(experiment.paper)}: {plain(experiment.item)}",
        "",
        plain(experiment.summary),
        "",
        f"```{{image}} pictures/{name}.png",
        f":alt: {experiment.paper}, {experiment.item}",
        f":target: ../_images/{name}.png",
        ":class: only-paper",
        "```",
        "",
        f"For print: {{download}}`{name}.pdf <pictures/{name}.pdf>`.",
        "",
        "```sh",
        f"python -m experiments run {name}",
        "```",
        "",
    ]
    for formula in experiment.mathematics:
        lines += ["```{math}", formula, "```", ""]
    if experiment.published:
        lines += [f"Printed in the paper: {plain(experiment.published)}", ""]
    return "\n".join([*lines, *_parameters(experiment)])


def _parameters(experiment: Experiment) -> list[str]:
    """Return what ``--set`` takes, with the values of the figure and what each one means."""
    rows = [
        f"- `--set {each.name}={text_of(each.quick)}`" + (each.about and f": {plain(each.about)}")
        for each in parameters_of(experiment).values()
    ]
    title = ["## What can be set", "", "With the values of the picture above.", ""]
    return [*title, *rows, ""] if rows else []


def plain(text: str) -> str:
    """Return a sentence in which nothing but backticks is markup."""
    pieces = _CODE.split(text)
    pieces[::2] = [re.sub(r"[\\*_<>\[\]$|{}#~^@]", r"\\\g<0>", piece) for piece in pieces[::2]]
    return "".join(pieces)


def _sentence(text: str) -> str:
    """Return the first sentence: what ends with a full stop before a capital."""
    return re.split(r"(?<=[.:;]) (?=[A-Z])", text, maxsplit=1)[0].rstrip(":;")
