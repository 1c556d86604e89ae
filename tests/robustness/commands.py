"""The commands of ``dpopt``, run in this process, and arguments to spoil them with."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from dpopt import Guarantee, majority, privacy, public_prior, roo
from dpopt.cli import cli, main

CODES = {0, 2, 3, 4, 5, 130}


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: object
    out: str
    err: str


def run(*arguments: str) -> Ended:
    """Run ``dpopt`` with arguments, warnings being errors; what escapes `main` escapes here."""
    out, err = io.StringIO(), io.StringIO()
    code: object = None
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        try:
            main(arguments)
        except SystemExit as end:
            code = end.code
    return Ended(code, out.getvalue(), err.getvalue())


def complaint(ended: Ended) -> str | None:
    """Return what is wrong with how a command ended, whatever it was asked; None if nothing is."""
    if ended.code not in CODES:
        return f"exit code {ended.code}"
    if ended.code == 0:
        return None if not ended.err else f"words on stderr: {ended.err!r}"
    if ended.out and ended.code not in {4, 5}:
        # What is not private is shown; what a full disk takes is not taken back.
        return f"exit code {ended.code} with words on stdout: {ended.out!r}"
    message = ended.err.rstrip("\n")
    if not message or "\n" in message or "Traceback" in message or len(message) > 1000:
        return f"no sentence: {message[:300]!r}"
    return None if message.endswith((".", "?")) else f"no end of a sentence: {message!r}"


def leaves(group: click.Group = cli, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command, those of groups with an action of their own included."""
    for name, command in sorted(group.commands.items()):
        words = (*before, name)
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield words
        if isinstance(command, click.Group):
            yield from leaves(command, words)


def options(words: tuple[str, ...]) -> list[click.Option]:
    """Return the options of a command."""
    command: click.Command = cli
    for word in words:
        assert isinstance(command, click.Group)
        command = command.commands[word]
    return [parameter for parameter in command.params if isinstance(parameter, click.Option)]


def baselines(folder: Path) -> dict[tuple[str, ...], list[str]]:
    """Return arguments that work, for each command that ends by itself."""
    spoiled = files(folder)
    return {
        ("majority",): ["--mechanisms", "3", "--epsilon", "0.1", "--allowance", "1"],
        ("kernel",): ["--prior", "0.2,0.3,0.5", "--epsilon", "1"],
        ("kernel", "release"): [
            *(spoiled["public-prior.json"], "--distribution", spoiled["numbers"]),
        ],
        ("roo",): ["--records", "10", "--letters", "3", "--epsilon", "0.5"],
        ("sample",): [
            *(spoiled["data.csv"], "--column", "city", "--alphabet", "a,b,c"),
            *("--epsilon", "1"),
        ],
        ("smoothed",): [
            *("--records", "6", "--lost-rate", "0.5", "--epsilon", "0.5", "--shares", "0.4,0.6"),
        ],
        ("profile",): ["--counts", "4,3", "--drawn", "3", "--epsilon", "0.5"],
        ("certify",): [spoiled["majority.json"]],
        ("release",): [spoiled["majority.json"], "--input", "1,1,0"],
        ("cite",): ["majority"],
        ("completion",): ["fish"],
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
    saved = {name: folder / f"{name}.json" for name in ("majority", "roo", "kernel")}
    majority.design(3, 0.1, 1).save(saved["majority"])
    roo.min_count(5, 2, 1.0).save(saved["roo"])
    privacy.quantise_kernel([[0.6, 0.4], [0.4, 0.6]], Guarantee(1.0)).save(saved["kernel"])
    prior = folder / "public-prior.json"
    public_prior.minimax_kernel([0.2, 0.3, 0.5], 1.0).save(prior)
    return found | {path.name: str(path) for path in (*saved.values(), prior)}


WORDS = (
    *("", "x", "nan", "inf", "-inf", "-1", "0", "-0", "0.5", "1e400", "9" * 400, "9" * 5000),
    *("1e-400", "1e308", "5e-324", "2", "3", "5", "ε\U0001f4a5", "a" * 10_000, "1,2", "1,,2", ","),
    *("nan,nan", "0.5:0.5", "0.2:0.3:0.5,0.1:0.1:0.8", "1:2", ".", "/", "no/such/folder/x"),
    *("exact", "roo", "journal", "conference", "smooth-floor", "leximin", "population"),
    *("surrogate", "worst-case", "uniform:0,1", "common-uniform:0,1", "point:0.3", "beta:1,1"),
    *("highs", "cvxpy:NOPE", "--", "-", "--json", "3,0.1", "1,1,0", "\x01\n", "0x10", "1_000"),
    *("１２", "1/3", "1e3", "--help", "\udcff", "999999999999"),
)
