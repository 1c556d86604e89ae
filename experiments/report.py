"""The index page: every figure with its table, parameters, findings and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from dpopt.files import write_text
from dpopt.provenance import versions
from experiments.registry import Cell, Comparison, Experiment, Outcome, Table

_OPEN_ROWS = 40

_STYLE = """
:root { color-scheme: light dark; --line: #d8d8d8; --soft: #5f5f5f; --tint: #f4f5f7;
        --agrees: #2c6e49; --differs: #9a6700; --refuted: #b3261e; --sharper: #2f5d9b; }
@media (prefers-color-scheme: dark) {
  :root { --line: #444; --soft: #aaa; --tint: #232527; --agrees: #7cc89a; --differs: #e0b050;
          --refuted: #ff8a80; --sharper: #8ab4f8; }
  img { filter: invert(.92) hue-rotate(180deg); }
}
body { font: 16px/1.5 system-ui, sans-serif; max-width: 74rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); }
h3 { margin-top: 2.2rem; } h4 { margin: 1rem 0 .2rem; }
a { color: var(--sharper); }
img { max-width: 100%; background: #fff; border: 1px solid var(--line); padding: .5rem;
      box-sizing: border-box; }
nav { display: grid; grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr)); gap: 0 2rem; }
nav ul { margin: .2rem 0 1rem; padding-left: 1.1rem; }
.scroll { overflow: auto; max-height: 28rem; }
table { border-collapse: collapse; font-size: .82rem; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .2rem .6rem; text-align: right;
         white-space: nowrap; }
th { position: sticky; top: 0; background: Canvas; }
.compare { font-size: .9rem; width: 100%; }
.compare th, .compare td { text-align: left; white-space: normal; vertical-align: top; }
.verdict { font-weight: 600; white-space: nowrap; }
.agrees { color: var(--agrees); } .differs { color: var(--differs); }
.refuted, .failed { color: var(--refuted); } .sharper { color: var(--sharper); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .4rem 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
details { margin: .5rem 0; } summary { cursor: pointer; color: var(--soft); }
.left { text-align: left; }
@media print { details > * { display: block; } .scroll { max-height: none; } }
"""


@dataclass(frozen=True)
class Entry:
    """One experiment in the report: its outcome and time, or why it failed."""

    experiment: Experiment
    outcome: Outcome | None
    seconds: float
    failure: str | None = None


def write_report(entries: Sequence[Entry], folder: Path, *, full: bool) -> Path:
    """Write ``report.html`` beside the files of the run; return its path."""
    papers = _by_paper(entries)
    sections = "".join(
        f'<h2 id="{_anchor(paper)}">{escape(paper)}</h2>'
        + "".join(_section(entry, full) for entry in group)
        for paper, group in papers.items()
    )
    libraries = ", ".join(f"{name} {version}" for name, version in versions().items())
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>dpopt experiments</title><style>{_STYLE}</style></head><body>"
        f"<h1>dpopt: {'full' if full else 'quick'} run</h1>"
        f"<p>{len(entries)} experiments in {sum(e.seconds for e in entries):.1f} s; "
        f"{escape(libraries)}.</p>{_disagreements(entries)}{_index(papers)}{sections}"
        "</body></html>\n"
    )
    path = folder / "report.html"
    write_text(path, page)
    return path


def _by_paper(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    papers: dict[str, list[Entry]] = {}
    for entry in entries:
        papers.setdefault(entry.experiment.paper, []).append(entry)
    return papers


def _anchor(paper: str) -> str:
    return "paper-" + "".join(c if c.isalnum() else "-" for c in paper.lower())


def _disagreements(entries: Sequence[Entry]) -> str:
    """Return every comparison in which paper and run part, most serious first."""
    found = [
        (comparison, entry.experiment)
        for verdict in ("refuted", "differs", "sharper")
        for entry in entries
        if entry.outcome is not None
        for comparison in entry.outcome.comparisons
        if comparison.verdict == verdict
    ]
    if not found:
        return ""
    rows = "".join(
        f'<tr><td><a href="#{escape(experiment.name)}">{escape(experiment.paper)}, '
        f"{escape(experiment.item)}</a></td>{_cells(comparison)}</tr>"
        for comparison, experiment in found
    )
    return (
        '<h2 id="disagreements">Where the papers and this run part</h2>'
        "<p>Refuted: a published statement that is false. Differs: another number. Sharper: the "
        "statement holds, and more does.</p>"
        f"{_comparison_table('<th>item</th>', rows)}"
    )


def _comparison_table(first: str, rows: str) -> str:
    head = f"{first}<th>the paper</th><th>this run</th><th>verdict</th><th>certificate</th>"
    return (
        f'<div class="scroll"><table class="compare"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _cells(comparison: Comparison) -> str:
    return (
        f"<td>{escape(comparison.claim)}</td><td>{escape(comparison.ours)}</td>"
        f'<td class="verdict {comparison.verdict}">{comparison.verdict}</td>'
        f"<td>{escape(comparison.certificate)}</td>"
    )


def _index(papers: dict[str, list[Entry]]) -> str:
    parts = "".join(
        f'<div><h4><a href="#{_anchor(paper)}">{escape(paper)}</a></h4><ul>'
        + "".join(_link(entry) for entry in group)
        + "</ul></div>"
        for paper, group in papers.items()
    )
    return f"<h2>Items by paper</h2><nav>{parts}</nav>"


def _link(entry: Entry) -> str:
    experiment = entry.experiment
    failed = " <span class=failed>failed</span>" if entry.failure else ""
    return (
        f'<li><a href="#{escape(experiment.name)}">{escape(experiment.item)}</a> '
        f"({entry.seconds:.1f} s){failed}</li>"
    )


def _section(entry: Entry, full: bool) -> str:
    experiment, name = entry.experiment, escape(entry.experiment.name)
    head = f'<h3 id="{name}">{escape(experiment.item)}</h3><p>{escape(experiment.summary)}</p>'
    if entry.outcome is None:
        return f'{head}<p class="failed">{escape(entry.failure or "failed")}</p>'
    outcome = entry.outcome
    printed = experiment.published or "no numbers are printed for this item"
    compared = "".join(f"<tr>{_cells(comparison)}</tr>" for comparison in outcome.comparisons)
    findings = "".join(f"<li>{escape(line)}</li>" for line in outcome.findings)
    tables = "".join(
        _table(f"{experiment.name}.{key}.csv", table) for key, table in outcome.tables.items()
    )
    return (
        f'{head}<a href="{name}.pdf"><img src="{name}.png" alt="{escape(experiment.item)}"></a>'
        f"<p>The paper: {escape(printed)}. Time: {entry.seconds:.1f} s.</p>"
        f"{_comparison_table('', compared) if compared else ''}"
        f"<ul>{findings}</ul>{tables}{_parameters(experiment, full)}"
        f'<p><a href="{name}.json">everything as JSON</a></p>'
    )


def _parameters(experiment: Experiment, full: bool) -> str:
    listed = "".join(
        f"<dt>{escape(key)}</dt><dd>{escape(str(value))}</dd>"
        for key, value in experiment.parameters(full).items()
    )
    return f"<details><summary>parameters</summary><dl>{listed}</dl></details>"


def _table(file: str, table: Table) -> str:
    words = [any(isinstance(row[i], str) for row in table.rows) for i in range(len(table.columns))]
    style = [" class=left" if word else "" for word in words]
    head = "".join(
        f"<th{kind}>{escape(column)}</th>"
        for kind, column in zip(style, table.columns, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{kind}>{escape(_show(cell))}</td>" for kind, cell in zip(style, row, strict=True)
        )
        + "</tr>"
        for row in table.rows
    )
    shown = " open" if len(table.rows) <= _OPEN_ROWS else ""
    return (
        f"<details{shown}><summary>{escape(table.caption)} ({len(table.rows)} rows)</summary>"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f'<tbody>{body}</tbody></table></div><p><a href="{escape(file)}">CSV</a></p></details>'
    )


def _show(cell: Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:.6g}"
    return str(cell)
