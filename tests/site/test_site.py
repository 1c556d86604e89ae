"""The reference: built without a warning, complete, and readable without a network."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click
import pytest

import dpopt
from dpopt import DpoptError, ParameterError, majority
from dpopt.cli import cli
from dpopt.explore.fields import command_of, fields_of, summary_of
from experiments.reference import build as building
from experiments.reference import pages
from experiments.reference.__main__ import main
from experiments.reference.commands import command_page
from experiments.reference.text import plain_docstring, plain_help

ROOT = Path(__file__).resolve().parents[2]
MISSING = [name for name in ("sphinx", "furo") if importlib.util.find_spec(name) is None]
needs_sphinx = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
# Attributes by which an element makes a browser load something.
LOADED = {"src", "srcset", "data", "poster", "action"}


class Page(HTMLParser):
    """What a page loads, links to, and can be linked at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in LOADED or (name == "href" and tag == "link"):
                self.loaded.append(value or "")
            elif name == "href":
                self.links.append(value or "")

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "deeper" / "reference"
    done = subprocess.run(
        [sys.executable, "-m", "experiments.reference", "--out", str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"reference: {out / 'index.html'}"
    assert not done.stderr.strip()
    return out


@pytest.fixture(scope="module")
def documents(reference: Path) -> dict[str, Page]:
    return {path.name: Page(path.read_text("utf-8")) for path in reference.glob("*.html")}


@pytest.fixture(scope="module")
def inventory(reference: Path) -> set[str]:
    """Names of objects.inv: four lines of header, then compressed lines "name role place ..."."""
    content = (reference / "objects.inv").read_bytes()
    assert content.startswith(b"# Sphinx inventory version 2")
    lines = zlib.decompress(content.split(b"\n", 4)[4]).decode("utf-8").splitlines()
    pattern = re.compile(r"(.+?)\s+(\S+:\S+)\s+-?\d+\s+\S+\s+.*")
    return {match[1] for line in lines if (match := pattern.match(line))}


def all_names() -> Iterator[str]:
    """Public names, and members and fields of public classes on the page that has them."""
    for page in pages.public_modules():
        module = importlib.import_module(page)
        yield page
        for name in pages.public_names(module):
            value, home = getattr(module, name), pages.home_of(module, name)
            yield f"{page}.{name}"
            if inspect.isclass(value) and home == page:
                yield from (f"{page}.{name}.{member}" for member in members(value))


def members(cls: type) -> set[str]:
    own = {
        name
        for name, value in vars(cls).items()
        if isinstance(value, property | cached_property | classmethod)
        or (inspect.isfunction(value) and value.__module__.startswith("dpopt"))
    }
    if dataclasses.is_dataclass(cls):
        inherited = {f.name for base in cls.__mro__[1:] for f in fields(base)}
        own |= {field.name for field in fields(cls)} - inherited
    if issubclass(cls, Enum):
        own |= set(cls.__members__)
    return {name for name in own if not name.startswith("_")}


def fields(cls: type) -> tuple[dataclasses.Field, ...]:
    return dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()


@needs_sphinx
def test_every_module_has_a_page_that_the_index_links(documents: dict[str, Page]) -> None:
    wanted = {f"{name}.html" for name in (*pages.public_modules(), "command_line")}
    assert wanted <= set(documents)
    assert wanted <= set(documents["index.html"].links)


@needs_sphinx
def test_every_name_is_in_the_index(inventory: set[str]) -> None:
    names = set(all_names())
    assert {"dpopt.solve", "dpopt.majority.design", "dpopt.roo.RULES"} <= names
    assert {"dpopt.majority.MajorityDesign.gamma", "dpopt.lp.Problem.add_rows"} <= names
    assert {"dpopt.lp.Status.OPTIMAL", "dpopt.roo.LetterSampler.release"} <= names
    assert sorted(names - inventory) == []


@needs_sphinx
def test_no_page_asks_a_server(reference: Path, documents: dict[str, Page]) -> None:
    loaded = [url for page in documents.values() for url in page.loaded]
    assert any(url.endswith(".css") or ".css?" in url for url in loaded)
    foreign = re.compile(r"^(?!data:)(?:[a-z]+:)?//", re.IGNORECASE)
    assert [url for url in loaded if foreign.match(url)] == []
    for sheet in reference.rglob("*.css"):
        text = sheet.read_text("utf-8")
        asked = re.findall(r"url\(\s*['\"]?([^)'\"]*)", text)
        asked += re.findall(r"@import\s+['\"]([^'\"]*)", text)
        assert [url for url in asked if foreign.match(url)] == [], sheet.name
    scripts = "".join(path.read_text("utf-8") for path in reference.rglob("*.js"))
    assert "mathjax" not in scripts.lower()
    assert not any("mathjax" in url.lower() for url in loaded)


@needs_sphinx
def test_links_within_the_reference_lead_somewhere_from_a_copy_elsewhere(
    reference: Path, documents: dict[str, Page], tmp_path: Path
) -> None:
    copy, followed = shutil.copytree(reference, tmp_path / "copy"), 0
    for name, page in documents.items():
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = unquote(parts.path) or name
            assert (copy / target).is_file(), f"{name}: {link}"
            if parts.fragment and target in documents:
                assert unquote(parts.fragment) in documents[target].anchors, f"{name}: {link}"
            followed += 1
    assert followed > 1000


@needs_sphinx
def test_no_path_of_the_machine_is_told(reference: Path) -> None:
    for path in reference.rglob("*"):
        if path.suffix in (".html", ".js", ".css"):
            text = path.read_text("utf-8")
            assert str(ROOT) not in text, path.name
            assert str(reference) not in text, path.name


@needs_sphinx
def test_formulas_and_examples_are_shown_as_they_stand(documents: dict[str, Page]) -> None:
    shown = documents["dpopt.majority.html"].text
    assert "E|p - 1/2|, from the incomplete beta function" in shown
    assert "mechanisms: int, epsilon: float, allowance: float, *, mechanism_delta: float" in shown
    assert "votes: npt.ArrayLike" in shown
    assert "Bound v with |tilted(t)| <= v / t: twice the peak of each density" in shown
    for line in (majority.design.__doc__ or "").splitlines():
        if line.strip().startswith(">>>"):
            assert line.strip() in shown
    for page in documents.values():
        assert not re.search(r"\\_|TypeAlias|_NestedSequence|<unknown>", page.text)
        assert "Problematic" not in page.text
        assert "System Message" not in page.text


@needs_sphinx
@pytest.mark.parametrize("kind", dpopt.kinds(), ids=lambda kind: kind.kind)
def test_a_kind_shows_its_program_fields_command_and_citation(
    kind: type, documents: dict[str, Page]
) -> None:
    package = ".".join(kind.__module__.split(".")[:2])
    assert kind.__name__ in pages.public_names(importlib.import_module(package))
    page = documents[f"{package}.html"]
    _, program = summary_of(kind)
    displayed = [line for line in program.splitlines() if line.startswith("    ")]
    assert displayed
    for text in (*displayed, command_of(kind.example()), *dpopt.cite(kind.kind).splitlines()):
        assert " ".join(text.split()) in page.text
    for field in fields_of(kind):
        assert f"{package}.{kind.__name__}.{field.name}" in page.anchors


@needs_sphinx
def test_the_command_line_page_has_every_option(documents: dict[str, Page]) -> None:
    page = documents["command_line.html"]
    for name, command in cli.commands.items():
        assert f"dpopt {name}" in page.text
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help, f"{name} {option.name} has no help"
                assert " ".join(option.help.replace("``", "").split()) in page.text
                assert any(f"cmdoption-dpopt-{name}-" in anchor for anchor in page.anchors)


def test_help_of_the_command_line_becomes_text_and_literals() -> None:
    text = command_page()
    assert "Example::\n\n    dpopt majority --mechanisms 5 --epsilon 0.5 --allowance 2\n" in text
    assert "::\n\n    minimise   max_i 1 - K[i, i]" in text
    assert ".. program:: dpopt majority\n\n.. option:: --mechanisms INTEGER\n" in text


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("|2l - K| and m * x", r"\|2l - K\| and m \* x"),
        ("sets *too large* to write", "sets *too large* to write"),
        ("``a * b`` and `x_`, x_", r"``a * b`` and `x_`, x\_"),
        ("queries_ but q_m", r"queries\_ but q_m"),
        ("queries_: how many", "queries_: how many"),
        ("a\\b", r"a\\b"),
        (">>> 2 * 3 | 1\n7\n\nx * y", ">>> 2 * 3 | 1\n7\n\nx \\* y"),
        ("a:\n\n    x * y\n      >= 1\n\nb", "a:\n\n::\n\n    x * y\n      >= 1\n\nb"),
        ("Args:\n    x: y\n\n    z * 1", "Args:\n    x: y\n\n    z \\* 1"),
    ],
)
def test_formulas_are_not_markup(given: str, wanted: str) -> None:
    assert plain_docstring(given) == wanted


def test_options_in_help_are_code() -> None:
    shown = plain_help("instead of --time-limit and  ``gamma``; a*b_ x--y")
    assert shown == r"instead of ``--time-limit`` and ``gamma``; a\*b\_ x--y"


def test_a_constant_has_the_docstring_of_where_it_is_defined() -> None:
    module = importlib.import_module("dpopt.roo")
    assert "rule_weights" in pages.constant_docstring(module, "RULES")
    assert pages.constant_docstring(module, "no such constant") == ""


def test_a_name_has_one_home() -> None:
    package, lp = importlib.import_module("dpopt"), importlib.import_module("dpopt.lp")
    assert pages.home_of(package, "solve") == pages.home_of(lp, "solve") == "dpopt.lp"
    assert pages.home_of(package, "cite") == "dpopt"
    assert pages.home_of(package, "majority") == "dpopt.majority"


@needs_sphinx
def test_a_warning_leaves_the_old_reference_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "objects.inv").write_text("an older one")
    broken = {"index": "Title\n=====\n\n*never closed\n"}
    monkeypatch.setattr(building, "all_pages", lambda: broken)
    with pytest.raises(DpoptError, match="was not written"):
        building.build(tmp_path)
    assert "Inline emphasis start-string without end-string" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["objects.inv"]
    monkeypatch.setattr(building, "all_pages", lambda: {"index": "Title\n=====\n\nText.\n"})
    assert building.build(tmp_path).read_text("utf-8").count("<h1>Title") == 1
    assert (tmp_path / "objects.inv").read_bytes().startswith(b"# Sphinx inventory")


@needs_sphinx
def test_a_folder_with_other_files_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ParameterError, match="new folder"):
        building.build(tmp_path / "thesis.tex")
    with pytest.raises(SystemExit) as caught:
        main(["--out", str(tmp_path)])
    assert caught.value.code == 2
    assert "out is" in capsys.readouterr().err
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_without_sphinx_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sphinx.cmd.build", None)
    with pytest.raises(SystemExit) as caught:
        main(["--out", str(tmp_path / "reference")])
    assert caught.value.code == 1
    assert "dpopt[docs]" in capsys.readouterr().err
    assert not (tmp_path / "reference").exists()


def test_a_missing_library_leaves_its_page_out(monkeypatch: pytest.MonkeyPatch) -> None:
    pages.public_modules.cache_clear()
    monkeypatch.setitem(sys.modules, "dpopt.interop.sklearn", None)
    try:
        assert "dpopt.interop.sklearn" not in pages.public_modules()
        assert "dpopt.interop.sklearn" in pages.all_modules()
        text = pages.all_pages()
        assert "dpopt.interop.sklearn" not in text
        (line,) = (line for line in text["index"].splitlines() if "not installed: " in line)
        assert "`dpopt.interop.sklearn`" in line
    finally:
        pages.public_modules.cache_clear()
