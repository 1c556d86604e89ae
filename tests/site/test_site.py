"""The site: built without a warning, whole, and readable from files, without a network."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click
import pytest

import dpopt
from docs.building import names
from dpopt._kinds import described
from dpopt.cli.group import loaded
from tests.browser import Page, chromium, complaints, requested, wait_for
from tests.site.build import FIGURES, MISSING, ROOT, built
from tests.test_public_names import public_members

pytestmark = [
    pytest.mark.slow,
    # test_building.py asks the same of the sources, and writes no page.
    pytest.mark.nightly,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]
# Attributes by which an element makes a browser load something.
LOADED = {"src", "srcset", "data", "poster", "action"}
NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
SIZES = [(1280, 900), (400, 800)]


def links(page: Page) -> list[str]:
    """Addresses that a reader may follow."""
    return [
        attributes["href"] or ""
        for tag, attributes in page.elements
        if tag != "link" and "href" in attributes
    ]


def loads(page: Page) -> list[str]:
    """Addresses that a browser asks for by itself."""
    return page.values(*LOADED) + [link["href"] or "" for link in page.all("link")]


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Let one process of the test run in at a time."""
    fcntl = pytest.importorskip("fcntl", reason="locks a file as Unix does")
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, once for all processes; only cells of the first pages are run."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    out, told = base / "site" / "pages", base / "site.log"
    with alone(base / "site.lock"):
        if not told.exists():
            told.write_text(
                built("html", out, base / "run", "guides/* findings/*"), encoding="utf-8"
            )
    text = told.read_text(encoding="utf-8")
    assert text.endswith("[0]"), text
    return out


@pytest.fixture(scope="session")
def documents(site: Path) -> dict[str, Page]:
    return {
        path.relative_to(site).as_posix(): Page(path.read_text("utf-8"))
        for path in site.rglob("*.html")
    }


@pytest.fixture(scope="session")
def inventory(site: Path) -> set[str]:
    """Names of objects.inv: four lines of header, then compressed lines "name role place ..."."""
    content = (site / "objects.inv").read_bytes()
    assert content.startswith(b"# Sphinx inventory version 2")
    lines = zlib.decompress(content.split(b"\n", 4)[4]).decode("utf-8").splitlines()
    pattern = re.compile(r"(.+?)\s+(\S+:\S+)\s+-?\d+\s+\S+\s+.*")
    return {match[1] for line in lines if (match := pattern.match(line))}


def all_names() -> Iterator[str]:
    """Public names, and members and fields of public classes on the page that has them."""
    for page in names.public_modules():
        module = importlib.import_module(page)
        yield page
        for name in names.public_names(module):
            value, home = getattr(module, name), names.home_of(module, name)
            yield f"{page}.{name}"
            if inspect.isclass(value) and home == page:
                inherited = {f for base in value.__mro__[1:] for f in fields_of(base)}
                own = {*public_members(value), *(fields_of(value) - inherited)}
                own |= set(value.__members__) if issubclass(value, Enum) else set()
                yield from (f"{page}.{name}.{member}" for member in own)


def fields_of(cls: type) -> set[str]:
    found = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    return {field.name for field in found if not field.name.startswith("_")}


def test_every_part_is_there_and_on_the_first_page(documents: dict[str, Page]) -> None:
    wanted = {"quickstart.html", "mechanisms.html", "guides.html", "gallery/index.html"}
    wanted |= {"your_program.html", "adding.html", "reference/index.html", "commands.html"}
    wanted |= {"findings/index.html", "papers.html", "changelog.html", "security.html"}
    wanted |= {"citing.html", "limits.html", "tools.html", "layout.html"}
    assert wanted <= set(links(documents["index.html"]))
    assert {f"guides/{name}.html" for name in NOTEBOOKS} <= set(documents)
    assert {f"gallery/{name}.html" for name in FIGURES} <= set(documents)


def test_every_module_has_a_page_that_the_index_links(documents: dict[str, Page]) -> None:
    wanted = [f"{name}.html" for name in names.public_modules()]
    assert set(wanted) <= set(links(documents["reference/index.html"]))
    listed = [link for link in links(documents["reference/index.html"]) if link in wanted]
    assert listed[0] == "dpopt.shape.html"


def test_every_name_is_in_the_index(inventory: set[str]) -> None:
    found = set(all_names())
    assert {"dpopt.solve", "dpopt.Majority", "dpopt.roo.RULES"} <= found
    assert {"dpopt.Majority.table", "dpopt.lp.Problem.add_rows"} <= found
    assert {"dpopt.Status.OPTIMAL", "dpopt.roo.CategorySetting.weights"} <= found
    assert sorted(found - inventory) == []


def test_no_page_names_a_server_to_load_from(site: Path, documents: dict[str, Page]) -> None:
    loaded = [url for page in documents.values() for url in loads(page)]
    assert any(url.endswith(".css") or ".css?" in url for url in loaded)
    foreign = re.compile(r"^(?!data:)(?:[a-z]+:)?//", re.IGNORECASE)
    assert [url for url in loaded if foreign.match(url)] == []
    for sheet in site.rglob("*.css"):
        text = sheet.read_text("utf-8")
        asked = re.findall(r"url\(\s*['\"]?([^)'\"]*)", text)
        asked += re.findall(r"@import\s+['\"]([^'\"]*)", text)
        assert [url for url in asked if foreign.match(url)] == [], sheet.name
    assert not any("mathjax" in url.lower() for url in loaded)
    assert (site / "_static/STIXTwoMath-Regular.ttf").stat().st_size > 100_000


def test_links_and_anchors_lead_somewhere(site: Path, documents: dict[str, Page]) -> None:
    followed = 0
    anchors = {name: set(page.values("id")) for name, page in documents.items()}
    for name, page in documents.items():
        for link in [*links(page), *loads(page)]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            here = site / name
            path = (here.parent / unquote(parts.path)).resolve() if parts.path else here
            assert path.is_file(), f"{name}: {link}"
            target = path.relative_to(site.resolve()).as_posix() if parts.path else name
            # What a script reads, not a place: the themes' highlighting and search.
            if parts.fragment and target in documents:
                assert unquote(parts.fragment) in anchors[target], f"{name}: {link}"
            followed += 1
    assert followed > 10_000


def test_no_path_of_the_machine_is_told(site: Path) -> None:
    for path in site.rglob("*"):
        if path.suffix in (".html", ".js", ".css"):
            text = path.read_text("utf-8")
            assert str(ROOT) not in text, path.name
            assert str(site) not in text, path.name


def test_formulas_and_examples_are_shown_as_they_stand(documents: dict[str, Page]) -> None:
    shown = documents["reference/dpopt.majority.html"].words
    settings = documents["reference/dpopt.html"].words
    assert "expected_error is the mean of |d(p)| if all voters share one p" in settings
    assert (
        "voters: int, epsilon: float, allowance: float = None, voter_delta: float = 0.0" in settings
    )
    assert "gamma: npt.ArrayLike" in shown
    assert "Bound v with |tilted(t)| <= v / t: twice the peak of each density" in shown
    for line in (dpopt.Majority.__doc__ or "").splitlines():
        if line.strip().startswith(">>>"):
            assert line.strip() in settings
    for name, page in documents.items():
        if name.startswith(("reference/", "commands")):
            assert not re.search(r"\\_|TypeAlias|_NestedSequence|<unknown>", page.words)
        assert "Problematic" not in page.words
        assert "System Message" not in page.words


@pytest.mark.parametrize("kind", dpopt.kinds(), ids=lambda kind: kind.kind)
def test_a_kind_shows_its_program_fields_and_command(
    kind: type[dpopt.Setting], documents: dict[str, Page]
) -> None:
    assert kind.__name__ in names.public_names(dpopt)
    page = documents["reference/dpopt.html"]
    source = described(kind)
    displayed = [line for line in source.about.splitlines() if line.startswith("    ")]
    assert displayed
    for text in (*displayed, source.example):
        assert " ".join(text.split()) in page.words
    for field in source.fields:
        assert f"dpopt.{kind.__name__}.{field.name}" in page.values("id")


def test_the_commands_have_every_option(documents: dict[str, Page]) -> None:
    page = documents["commands.html"]
    for name, command in loaded().commands.items():
        assert f"dpopt {name}" in page.words
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help, f"{name} {option.name} has no help"
                assert " ".join(option.help.replace("``", "").split()) in page.words
                assert any(f"cmdoption-dpopt-{name}-" in anchor for anchor in page.values("id"))
    assert "python -m experiments" in page.words


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_its_picture_command_and_pdf(name: str, documents: dict[str, Page]) -> None:
    page = documents[f"gallery/{name}.html"]
    assert f"../_images/{name}.png" in loads(page)
    assert any(link.endswith(f"/{name}.pdf") for link in links(page))
    assert f"python -m experiments run {name}" in page.words
    index = documents["gallery/index.html"]
    assert f"../_images/{name}-part.png" in loads(index)
    assert f"{name}.html" in links(index)


def test_the_quickstart_was_run_and_has_a_picture(documents: dict[str, Page]) -> None:
    page = documents["quickstart.html"]
    drawn = [each for each in page.all("figure") if each.get("role") == "img"]
    assert drawn or any("_images/" in url for url in loads(page))
    assert "Traceback" not in page.words


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}px")
def test_every_page_in_a_browser(
    size: tuple[int, int], site: Path, documents: dict[str, Page], tmp_path: Path
) -> None:
    """No page is wider than the window, complains, lacks a picture, or asks beyond the machine."""
    wide, broken = [], []
    with chromium(tmp_path, size=size) as driver:
        for name in documents:
            driver.get((site / name).as_uri())
            width, pictures = driver.execute_async_script(_MEASURE)
            wide += [name] if width > size[0] else []
            broken += [f"{name}: {url}" for url in pictures]
        assert wide == []
        assert broken == []
        assert complaints(driver) == []
        asked = requested(driver)
        assert len(asked) > len(documents)
        assert [url for url in asked if not url.startswith("file:")] == []


_MEASURE = """
const done = arguments[arguments.length - 1], images = [...document.images];
for (const image of images) image.loading = "eager";
Promise.all(images.map(image => image.decode().then(() => null, () => image.src))).then(
  found => done([document.documentElement.scrollWidth, found.filter(url => url !== null)])
);
"""


def test_the_search_works_from_files(site: Path, tmp_path: Path) -> None:
    with chromium(tmp_path) as driver:
        driver.get((site / "search.html").as_uri() + "?q=Kernel")
        found = "return document.querySelectorAll('#search-results li a').length > 0"
        wait_for(driver, found)
        assert complaints(driver) == []
