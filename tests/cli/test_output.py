"""Standard output that takes no answer: tried before a draw, said in a sentence, exit code 5."""

from __future__ import annotations

import io
import json
import os
import secrets
import select
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

import dpopt
from tests.robustness.commands import Ended, run

FULL = Path("/dev/full")
DRAWS: dict[str, list[str]] = {
    "majority": ["release", "gamma.json", "--input", "1,1,0"],
    "min-count": ["release", "rule.json", "--input", "3,2"],
    "kernel": ["release", "kernel.json", "--distribution", "p.txt"],
    "sample": ["sample", "data.csv", "--column", "city", "--labels", "b,ε", "--epsilon", "1"],
}
CATEGORIES = {"kernel": {"a", "ε", "c"}, "sample": {"b", "ε"}}
SHOWS: dict[str, list[str]] = {
    "help": ["--help"],
    "help of a verb": ["reveal-or-obscure", "--help"],
    "version": ["--version"],
    "roo": ["reveal-or-obscure", "--records", "9", "--categories", "2", "--epsilon", "1"],
    "not private": [
        *(
            "reveal-or-obscure",
            "--records",
            "3",
            "--categories",
            "2",
            "--epsilon",
            "0.5",
            "--rule",
            "journal",
        ),
    ],
    "majority": ["majority", "--voters", "3", "--epsilon", "0.1", "--allowance", "1"],
    "prior": ["public-prior", "--public", "0.5,0.5", "--epsilon", "1"],
    "certify": ["certify", "gamma.json"],
    "cite": ["cite"],
    "completion": ["completion", "fish"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("output")
    dpopt.design(dpopt.Majority(3, 0.1, 1)).save(made / "gamma.json")
    dpopt.design(dpopt.RevealOrObscure(5, 2, 1.0)).save(made / "rule.json")
    prior = dpopt.design(dpopt.PublicPrior([0.2, 0.3, 0.5], 1.0, labels=["a", "ε", "c"]))
    prior.save(made / "kernel.json")
    (made / "p.txt").write_text("1 0 0")
    (made / "data.csv").write_text("city\nb\nb\nb\n")
    return made


@pytest.fixture(autouse=True)
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.chdir(folder)
    if "sample" in request.node.name:
        pytest.importorskip("polars", reason="polars is not installed (extra data)")


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which functions were asked for the system's randomness, without which nothing is drawn."""
    asked: list[str] = []
    for name in ("randbelow", "token_bytes"):
        real = getattr(secrets, name)

        def draw(*size: int, name: str = name, real: object = real) -> object:
            asked.append(name)
            return real(*size)  # type: ignore[operator]

        monkeypatch.setattr(secrets, name, draw)
    return asked


@contextmanager
def without_reader() -> Iterator[TextIO]:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        yield stream


def assert_refused(ended: Ended) -> None:
    assert ended.code == 5, ended.err
    assert ended.err.count("\n") == 1, ended.err
    assert ended.err.startswith("standard output ")
    assert ended.err.endswith(".\n")


@pytest.mark.parametrize("name", DRAWS)
def test_nothing_is_drawn_for_an_output_that_takes_nothing(name: str, drawn: list[str]) -> None:
    """Closed when the process began, open for reading only, and without a reader."""
    words = [*DRAWS[name], "--json"]
    assert_refused(run(*words, to=None))
    with Path(os.devnull).open() as unwritable:
        assert_refused(run(*words, to=unwritable))
    if hasattr(select, "poll"):
        # Elsewhere it is known only when the answer is written.
        with without_reader() as stream:
            assert_refused(run(*words, to=stream))
    assert drawn == []
    assert run(*words).code == 0
    assert drawn


class Limited(io.StringIO):
    """A file that may not grow: it takes the empty write before the draw, and no other."""

    def write(self, text: str) -> int:
        raise OSError(27, "File too large") if text else ValueError(text)


@pytest.mark.parametrize("name", DRAWS)
def test_what_was_drawn_and_not_written_is_said_to_be_spent(name: str, drawn: list[str]) -> None:
    ended = run(*DRAWS[name], "--json", to=Limited())
    assert_refused(ended)
    assert "what was drawn is lost, and its privacy is spent" in ended.err
    assert drawn


@pytest.mark.parametrize("name", CATEGORIES)
def test_a_category_that_the_terminal_lacks(name: str, drawn: list[str]) -> None:
    """Refused whichever category would be drawn; JSON escapes it."""
    ended = run(*DRAWS[name], to=io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
    assert_refused(ended)
    assert "has no '\\u03b5'" in ended.err
    assert drawn == []
    content = io.BytesIO()
    with io.TextIOWrapper(content, encoding="latin-1") as terminal:
        assert run(*DRAWS[name], "--json", to=terminal).code == 0
        assert set(json.loads(content.getvalue())["released"]) <= CATEGORIES[name]


def test_all_queries_are_checked_before_one_is_answered(folder: Path, drawn: list[str]) -> None:
    for file, good, bad in (("gamma.json", "1,1,0", "1,2,0"), ("rule.json", "3,2", "3,3")):
        drawn.clear()
        (folder / "queries").write_text(f"{good}\n{bad}\n")
        ended = run("release", file, "--input", "queries")
        assert (ended.code, ended.out, drawn) == (2, "", [])
        (folder / "queries").write_text(f"{good}\n{good}\n")
        ended = run("release", file, "--input", "queries")
        assert (ended.code, ended.out.count("\n")) == (0, 2)


@pytest.mark.parametrize("name", SHOWS)
def test_every_verb_says_that_its_answer_was_not_taken(name: str) -> None:
    assert_refused(run(*SHOWS[name], to=None))
    if FULL.exists():
        with FULL.open("w") as full:
            assert_refused(run(*SHOWS[name], to=full))


def test_an_alphabet_of_bytes_that_are_no_text() -> None:
    pytest.importorskip("polars", reason="polars is not installed (extra data)")
    ended = run(*(word.replace("ε", "\udcff") for word in DRAWS["sample"]))
    assert (ended.code, ended.out) == (2, "")
    assert "labels is 'b,\\udcff'" in ended.err
