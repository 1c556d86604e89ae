"""Standard output that takes no answer: tried before a draw, said in a sentence, exit code 5."""

from __future__ import annotations

import io
import json
import os
import secrets
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

import dpopt
from dpopt.cli.output import show
from dpopt.proofs.saved import seal
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
        *("reveal-or-obscure", "--records", "3", "--categories", "2"),
        *("--epsilon", "0.5", "--rule", "journal"),
    ],
    "majority": ["majority", "--voters", "3", "--epsilon", "0.1", "--allowance", "1"],
    "prior": ["public-prior", "--public", "0.5,0.5", "--epsilon", "1"],
    "certify": ["certify", "gamma.json"],
    "cite": ["cite"],
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
def test_a_category_that_the_terminal_lacks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written as its escape, and by JSON as in every encoding: no draw is lost."""
    content = io.BytesIO()
    with io.TextIOWrapper(content, encoding="latin-1") as terminal:
        assert run(*DRAWS[name], to=terminal).code == 0
        assert run(*DRAWS[name], "--json", to=terminal).code == 0
        monkeypatch.setattr(sys, "stdout", terminal)
        show("b ε")
        drawn, record, escaped = content.getvalue().decode("ascii").splitlines()
    assert drawn in {ascii(category)[1:-1] for category in CATEGORIES[name]}
    assert set(json.loads(record)["released"]) <= CATEGORIES[name]
    assert escaped == "b \\u03b5"


def test_all_queries_are_checked_before_one_is_answered(folder: Path, drawn: list[str]) -> None:
    for file, good, bad in (("gamma.json", "1,1,0", "1,2,0"), ("rule.json", "3,2", "3,3")):
        drawn.clear()
        (folder / "queries").write_text(f"{good}\n{bad}\n")
        ended = run("release", file, "--input", "queries")
        assert (ended.code, ended.out, drawn) == (2, "", [])
        (folder / "queries").write_text(f"{good}\n{good}\n")
        ended = run("release", file, "--input", "queries")
        assert (ended.code, ended.out.count("\n")) == (0, 2)


def test_inputs_that_have_names_are_named() -> None:
    ended = run("release", "kernel.json", "--input", "ε,a", "--json")
    assert ended.code == 0
    assert len(json.loads(ended.out)["released"]) == 2
    refused = run("release", "kernel.json", "--input", "0")
    assert (refused.code, refused.out) == (2, "")
    assert "names of inputs ('a', 'ε', 'c')" in refused.err


def test_every_verb_says_that_its_answer_was_not_taken() -> None:
    for name in SHOWS:
        assert_refused(run(*SHOWS[name], to=None))
        if FULL.exists():
            with FULL.open("w") as full:
                assert_refused(run(*SHOWS[name], to=full))


def test_an_alphabet_of_bytes_that_are_no_text() -> None:
    pytest.importorskip("polars", reason="polars is not installed (extra data)")
    ended = run(*(word.replace("ε", "\udcff") for word in DRAWS["sample"]))
    assert (ended.code, ended.out) == (2, "")
    assert "labels is 'b,\\udcff'" in ended.err


# It sets a window's title, a colour, moves to the start of a line, and forges another one.
OBEYED = "a\x1b]0;owned\x07\x1b[31m\r\x7f\x9b2J\u202e\nprivate: forged line"


def forged(file: str, name: str, folder: Path) -> Path:
    """Return a copy of a saved design with another name in place of "a", and a right hash."""
    record = json.loads((folder / file).read_text())
    body = json.loads(json.dumps(record["body"]).replace('"a"', json.dumps(name)))
    seal(record["kind"], body, folder / f"forged {file}")
    return folder / f"forged {file}"


@pytest.mark.parametrize("file", ["kernel.json", "named.json"])
def test_names_that_a_terminal_obeys_are_refused(file: str, folder: Path) -> None:
    names = ["a", "b"]
    dpopt.design(dpopt.Kernel([[0, 1], [1, 0]], 1.0, input_names=names, output_names=names)).save(
        folder / "named.json"
    )
    same = forged(file, "d", folder)
    assert run("certify", str(same)).code == 0
    path = forged(file, OBEYED, folder)
    for words in (["certify", str(path)], ["release", str(path), "--input", "b"]):
        ended = run(*words)
        assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
        assert "it must have printable characters only" in ended.err
        assert ended.err.strip("\n").isprintable()
    for make in (
        lambda: dpopt.Kernel([[0, 1], [1, 0]], 1.0, input_names=["b", OBEYED]),
        lambda: dpopt.Kernel([[0, 1], [1, 0]], 1.0, output_names=["b", OBEYED]),
        lambda: dpopt.PublicPrior([0.5, 0.5], 1.0, labels=["b", OBEYED]),
    ):
        with pytest.raises(dpopt.ParameterError, match="printable characters only"):
            make()


def test_a_table_s_names_that_a_terminal_obeys_are_refused(folder: Path) -> None:
    (folder / "table.csv").write_text("input,output,probability\na,\x1b[31mx,1\nb,\x1b[31mx,1\n")
    ended = run("certify", "table.csv")
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.strip("\n").isprintable()


def test_what_else_of_a_file_is_shown_is_escaped(folder: Path) -> None:
    """Names of rows of constraints, and categories: each in one line, and JSON stays JSON."""
    rows = [[OBEYED, [[0, 0, 0]], [1], [0.1], [None]]]
    (folder / "rows.json").write_text(json.dumps(rows))
    (folder / "table.csv").write_text("0.6,0.4\n0.4,0.6\n")
    words = ["certify", "table.csv", "--epsilon", "1", "--constraints", "rows.json"]
    plain = [line for line in run(*words).out.splitlines() if line.startswith("row ")]
    assert len(plain) == 1
    assert "a\\x1b]0;owned\\x07" in plain[0]
    assert "\\nprivate: forged line missed by" in plain[0]
    assert plain[0].isprintable()
    out = run(*words, "--json").out
    assert out.strip("\n").isprintable()
    assert list(json.loads(out)["residuals"]) == [OBEYED]
