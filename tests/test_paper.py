"""The paper about the package: its length, references, figures, commands and numbers hold.

`CITATION.cff` names the papers as the bibliography does.
"""

from __future__ import annotations

import re
import shlex
from itertools import takewhile
from math import comb

import pytest

import dpopt
from experiments.benchmarks.spec import benchmarks
from experiments.catalogue import all_experiments
from experiments.parameters import parameters_of
from tests.pages import ROOT

FOLDER = ROOT / "docs/paper"
PAPER = (FOLDER / "paper.md").read_text(encoding="utf-8")
_, HEAD, BODY = PAPER.split("---\n", 2)
COMMENTS = re.findall(r"<!--(.*?)-->", BODY, re.DOTALL)
TEXT = re.sub(r"<!--.*?-->", "", BODY, flags=re.DOTALL)
BIBLIOGRAPHY = (FOLDER / re.findall(r"^bibliography: (\S+)$", HEAD, re.MULTILINE)[0]).resolve()
ENTRIES = dict(
    re.findall(
        r"^@\w+\{(\w+),\n(.*?)^\}", BIBLIOGRAPHY.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
)
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
SECTIONS = (
    *("Summary", "Statement of need", "State of the field", "Software design"),
    *("Research impact statement", "AI usage disclosure", "Acknowledgements", "References"),
)


def field(entry: str, name: str) -> str:
    """A field of an entry in BibTeX, without braces and line breaks; empty if there is none."""
    value = rf"^  {name} *= \{{(.*?)\}},?\n(?=  \w+ *=|\Z)"
    found = re.search(value, entry, re.DOTALL | re.MULTILINE)
    return " ".join(re.sub(r"[{}]", "", found[1]).split()) if found else ""


def test_it_is_what_the_journal_asks_for_and_what_it_refers_to_is_there() -> None:
    assert tuple(re.findall(r"^# (.*)$", TEXT, re.MULTILINE)) == SECTIONS
    assert 750 <= len(TEXT.split()) <= 1000
    assert set(re.findall(r"^(\w+):", HEAD, re.MULTILINE)) == {
        *("title", "tags", "authors", "affiliations", "date", "bibliography")
    }
    cited = set(re.findall(r"(?<![\w.])@(\w+)", TEXT))
    assert len(cited) > 15
    assert cited <= set(ENTRIES)
    figures = re.findall(r"!\[(.*?)\]\((\S+)\)", TEXT, re.DOTALL)
    assert len(figures) == 2
    for caption, path in figures:
        (label,) = re.findall(r"\\label\{(fig:\w+)\}", caption)
        assert rf"\autoref{{{label}}}" in TEXT
        assert (FOLDER / path).read_bytes().startswith(b"\x89PNG")
    assert all(path.stat().st_size < 100_000 for path in FOLDER.iterdir())
    # Every paragraph with a claim names files.
    assert sum(comment.strip().startswith("shown by: ") for comment in COMMENTS) == 8
    named = re.findall(r"(?:docs|tests|experiments|dpopt)/[\w./]+\w", "\n".join(COMMENTS))
    assert len(named) > 10
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_command_names_what_there_is() -> None:
    ran: set[str] = set()
    lines = "\n".join(COMMENTS).replace(";", "\n").replace("&&", "\n").splitlines()
    for line in lines:
        _, is_command, command = line.partition("python -m experiments ")
        if not is_command:
            continue
        verb, *arguments = shlex.split(command)
        names = list(takewhile(lambda word: not word.startswith("--"), arguments))
        assert (verb, bool(names)) == ("run", True)
        assert set(names) <= set(all_experiments())
        timed = re.findall(r"--set names=([\w;-]+)", command)
        assert set(timed) <= set(benchmarks())
        ran |= {*names, *timed}
        for setting in re.findall(r"--set (\w+)=", command):
            assert all(setting in parameters_of(all_experiments()[name]) for name in names)
    assert {"majority-figure-2", "roo-audit-map", "modelling-count"} <= ran


def test_the_errors_of_majorities() -> None:
    """Those of one label are computed; a test runs the page that prints those of twenty."""
    one = dpopt.design(dpopt.Majority(11, 0.1, allowance=3)).expected_error
    independent = [
        dpopt.design(dpopt.Majority(11, 0.1, 3, prior="uniform:0,1", objective=objective))
        for objective in ("surrogate", "mean")
    ]
    assert f"of {one:.3f} under the default prior" in TEXT
    assert "from {:.3f} to {:.3f}.".format(*(each.expected_error for each in independent)) in TEXT
    page = (ROOT / "docs/releases.md").read_text(encoding="utf-8")
    for printed, rounded in (("0.0331", "0.033"), ("0.0728", "0.073")):
        assert f"\n{printed}\n" in page
        assert rounded in TEXT


def test_the_counts_of_constraints() -> None:
    """Multisets of four corners; of three, for either of the two that exclude each other."""
    voters = 35
    full, reduced = comb(voters + 3, 3), 2 * comb(voters + 2, 2) - (voters + 1)
    assert f"{reduced:,}\n  instead of {full:,} for {voters} voters" in TEXT


def test_the_ratio_of_the_journals_rule_and_the_number_of_counterexamples() -> None:
    audit = dpopt.design(dpopt.RevealOrObscure(3, 2, 0.5, "journal")).audit
    assert f"is {audit.excess_factor:.3f} times $e^{{0.5}}$" in TEXT
    referee = (ROOT / "docs/referee.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `[\w-]+\.finding\.json` \| (.*?) \|", referee, re.MULTILINE)
    misprints = sum("a misprint" in row for row in rows)
    of_no_paper = sum("of no paper" in row for row in rows)
    assert (len(rows), misprints, of_no_paper) == (20, 3, 1)
    assert "Twenty files, three on misprints and one on a conjecture of no paper" in TEXT


@pytest.mark.parametrize(
    "key",
    [
        *("jiang2024optimized", "tasnim2025differentially", "tasnim2025reveal"),
        *("zamanlooy2024locally", "liu2023smoothed"),
    ],
)
def test_the_citation_file_names_the_papers_as_the_bibliography_does(key: str) -> None:
    entry = ENTRIES[key]
    (block,) = (part for part in CITATION.split("\n  - type: ") if field(entry, "title") in part)
    authors = re.findall(r"family-names: (\S+)\n +given-names: \"?([^\"\n]+)", block)
    assert field(entry, "author") == " and ".join(f"{family}, {given}" for family, given in authors)
    assert f"year: {field(entry, 'year')}\n" in block + "\n"
    venue = field(entry, "journal") or field(entry, "booktitle")
    assert f'"{venue}"' in block
    assert field(entry, "doi") in block
    assert not field(entry, "eprint") or f'"arXiv:{field(entry, "eprint")}"' in block


def test_the_citation_file_is_of_this_version() -> None:
    assert f"\nversion: {dpopt.__version__}\n" in CITATION
    assert "\ntype: software\n" in CITATION
    assert field(ENTRIES["dpopt"], "title") in CITATION
