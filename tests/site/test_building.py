"""What makes the pages: docstrings and help as text, settings as commands, homes of names."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("sphinx", reason="Sphinx is not installed (extra test-all)")

from docs.building import mathematics, names, reference, sources
from docs.building.text import plain_docstring, plain_help
from tests.site.build import MISSING, built


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
def test_the_sources_of_all_pages_are_read_without_a_warning(tmp_path: Path) -> None:
    """By the builder that writes nothing: to write pages takes as long again."""
    text = built("dummy", tmp_path / "pages", tmp_path / "run")
    assert text.endswith("[0]"), text


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
    assert "rule_weights" in names.constant_docstring(module, "RULES")
    assert names.constant_docstring(module, "no such constant") == ""


def test_a_name_has_one_home() -> None:
    package, lp = importlib.import_module("dpopt"), importlib.import_module("dpopt.lp")
    shape = importlib.import_module("dpopt.shape")
    assert names.home_of(package, "solve") == names.home_of(lp, "solve") == "dpopt"
    assert names.home_of(package, "load") == names.home_of(shape, "load") == "dpopt.shape"
    assert names.home_of(lp, "make_rows") == "dpopt.lp"
    assert names.home_of(package, "majority") == "dpopt.majority"


def test_a_missing_library_leaves_its_page_out(monkeypatch: pytest.MonkeyPatch) -> None:
    names.public_modules.cache_clear()
    monkeypatch.setitem(sys.modules, "dpopt.interop.sklearn", None)
    try:
        assert "dpopt.interop.sklearn" not in names.public_modules()
        assert "dpopt.interop.sklearn" in names.all_modules()
        text = reference.all_pages()
        assert "dpopt.interop.sklearn.rst" not in text
        (line,) = (row for row in text["index.rst"].splitlines() if "not installed: " in row)
        assert "`dpopt.interop.sklearn`" in line
    finally:
        names.public_modules.cache_clear()


def test_links_to_files_lead_to_their_pages() -> None:
    given = (
        "[a](../notebooks/kernel.ipynb) [b](docs/theorems/corners.md) [c](PAPERS.md) [d](other.md)"
    )
    wanted = "[a](/guides/kernel.ipynb) [b](/theorems/corners.md) [c](/papers.md) [d](other.md)"
    assert sources.on_site(given) == wanted


def test_mathematics_is_mathml() -> None:
    tree = ElementTree.fromstring(
        mathematics.mathml(r"\frac{1}{2} \le e^{\varepsilon}", display=True)
    )
    assert tree.tag == "{http://www.w3.org/1998/Math/MathML}math"
    assert tree.get("display") == "block"
    assert "".join(tree.itertext()) == "12\u2264e\u03b5"
