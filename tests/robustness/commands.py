"""The commands of ``dpopt``, run in this process, and arguments to spoil them with."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import click

import dpopt
from dpopt import _kinds
from dpopt._kinds import arguments
from dpopt.cli import main
from dpopt.cli.group import loaded
from tests import solved

CODES = {0, 2, 3, 4, 5, 130}


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: object
    out: str
    err: str


_KEPT = io.StringIO()


def run(*arguments: str, to: TextIO | None = _KEPT) -> Ended:
    """Run ``dpopt`` with arguments, warnings being errors; what escapes `main` escapes here.

    Args:
        arguments: of the command.
        to: its standard output, None if that is closed; by default what it prints is returned.
    """
    out, err = io.StringIO(), io.StringIO()
    code: object = None
    with (
        contextlib.redirect_stdout(out if to is _KEPT else to),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        try:
            main(arguments)
        except SystemExit as end:
            code = end.code
    return Ended(code, out.getvalue(), err.getvalue())


_SPENT = re.compile(r"[0-9,]+ releases? of [^\n]*\.\n")


def complaint(ended: Ended) -> str | None:
    """Return what is wrong with how a command ended, whatever it was asked; None if nothing is."""
    if ended.code not in CODES:
        return f"exit code {ended.code}"
    if ended.code == 0:
        # A command that releases says there, in one line, what is spent.
        told = not ended.err or _SPENT.fullmatch(ended.err)
        return None if told else f"words on stderr: {ended.err!r}"
    if ended.out and ended.code not in {4, 5}:
        # What is not private is shown; what a full disk takes is not taken back.
        return f"exit code {ended.code} with words on stdout: {ended.out!r}"
    message = ended.err.rstrip("\n")
    if not message or "\n" in message or "Traceback" in message or len(message) > 1000:
        return f"no sentence: {message[:300]!r}"
    return None if message.endswith((".", "?")) else f"no end of a sentence: {message!r}"


def options(name: str) -> list[click.Option]:
    """Return the options of a command."""
    parameters = loaded().commands[name].params
    return [parameter for parameter in parameters if isinstance(parameter, click.Option)]


def example(kind: str) -> list[str]:
    """Return the arguments of a kind's command that ask for its example."""
    return arguments(solved.example(kind).to_dict())


def baselines(folder: Path) -> dict[str, list[str]]:
    """Return arguments that work, for each command that ends by itself."""
    spoiled = files(folder)
    column = [spoiled["data.csv"], "--column", "city", "--labels", "a,b,c", "--epsilon", "1"]
    return {
        **{kind: example(kind) for kind in _kinds.KINDS},
        "sample": column,
        "mode": column,
        "certify": [spoiled["majority.json"]],
        "verify": [spoiled["majority.json"]],
        "release": [spoiled["majority.json"], "--input", "1,1,0"],
        "ledger": [spoiled["study.ledger"]],
        "cite": [],
    }


def files(folder: Path) -> dict[str, str]:
    """Write files of every kind, good and bad, and return their paths by name."""
    found = {name: str(folder / name) for name in ("missing", "loop", "folder", "missing/below")}
    texts: dict[str, bytes] = {
        "empty": b"",
        "binary": bytes(range(256)) * 8,
        "huge-line": b"1 " * 100_000,
        "latin-1": "é,ü".encode("latin-1"),
        "nan": b"nan inf 1e400",
        "digits": b"9" * 5000,
        "numbers": b"2 3 5",
        "data.csv": b"city,year\na,1\nb,2\na,3\n",
        "nul": b"\0" * 100,
        "deep.json": b"[" * 50_000,
    }
    for name, content in texts.items():
        (folder / name).write_bytes(content)
        found[name] = str(folder / name)
    if not (folder / "folder").exists():
        (folder / "folder").mkdir()
        (folder / "loop").symlink_to(folder / "loop")
    dpopt.design(dpopt.Majority(3, 0.1, 1)).save(folder / "majority.json")
    found["majority.json"] = str(folder / "majority.json")
    # A ledger is never written over by itself; a hostile place to save may be its own.
    (folder / "study.ledger").unlink(missing_ok=True)
    dpopt.Ledger(folder / "study.ledger")
    found["study.ledger"] = str(folder / "study.ledger")
    for kind in _kinds.KINDS:
        path = folder / f"example-{kind}.json"
        if not path.exists():
            solved.solved(kind).save(path)
        found[path.name] = str(path)
    return found


WORDS = (
    *("", "x", "nan", "inf", "-inf", "-1", "0", "-0", "0.5", "1e400", "9" * 400, "9" * 5000),
    *("1e-400", "1e308", "5e-324", "2", "3", "5", "ε\U0001f4a5", "a" * 10_000, "1,2", "1,,2", ","),
    *("nan,nan", "0.5:0.5", "0.2:0.3:0.5,0.1:0.1:0.8", "1:2", ".", "/", "no/such/folder/x"),
    *("exact", "roo", "journal", "conference", "smooth-floor", "leximin", "population"),
    *("surrogate", "worst-case", "uniform:0,1", "common-uniform:0,1", "point:0.3", "beta:1,1"),
    *("highs", "cvxpy:NOPE", "--", "-", "--json", "3,0.1", "1,1,0", "\x01\n", "0x10", "1_000"),
    *("１２", "1/3", "1e3", "--help", "\udcff", "999999999999"),
)
