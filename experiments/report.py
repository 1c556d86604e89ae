"""The index page: every figure with its table, parameters, findings and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path

from dpopt.files import write_text
from dpopt.provenance import versions
from experiments.registry import Cell, Experiment, Outcome, Table

_STYLE = """
:root { color-scheme: light dark; --line: #d5d5d5; --soft: #666; --paper: #fff; }
@media (prefers-color-scheme: dark) { :root { --line: #444; --soft: #aaa; --paper: #f4f4f4; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); }
img { max-width: 100%; background: var(--paper); border: 1px solid var(--line); padding: .5rem;
      box-sizing: border-box; }
.scroll { overflow-x: auto; max-height: 28rem; overflow-y: auto; }
table { border-collapse: collapse; font-size: .82rem; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .2rem .6rem; text-align: right;
         white-space: nowrap; }
th { position: sticky; top: 0; background: Canvas; }
td:nth-child(2), th:nth-child(2) { text-align: left; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; }
dt { color: var(--soft); } dd { margin: 0; }
.failed { color: #c1432e; }
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
    groups = groupby(entries, key=lambda entry: entry.experiment.paper)
    sections = "".join(
        f"<h2>{escape(paper)}</h2>" + "".join(_section(entry, full) for entry in group)
        for paper, group in groups
    )
    libraries = ", ".join(f"{name} {version}" for name, version in versions().items())
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>dpopt experiments</title><style>{_STYLE}</style></head><body>"
        f"<h1>dpopt: {'full' if full else 'quick'} run</h1>"
        f"<p>{len(entries)} experiments in {sum(e.seconds for e in entries):.1f} s; "
        f"{escape(libraries)}.</p>{_index(entries)}{sections}</body></html>\n"
    )
    path = folder / "report.html"
    write_text(path, page)
    return path


def _index(entries: Sequence[Entry]) -> str:
    lines = "".join(
        f'<li><a href="#{escape(e.experiment.name)}">{escape(e.experiment.paper)}, '
        f"{escape(e.experiment.item)}</a> ({e.seconds:.1f} s)"
        f"{' <span class=failed>failed</span>' if e.failure else ''}</li>"
        for e in entries
    )
    return f"<ul>{lines}</ul>"


def _section(entry: Entry, full: bool) -> str:
    experiment, name = entry.experiment, escape(entry.experiment.name)
    head = f'<h3 id="{name}">{escape(experiment.item)}</h3><p>{escape(experiment.summary)}</p>'
    if entry.outcome is None:
        return f'{head}<p class="failed">{escape(entry.failure or "failed")}</p>'
    printed = experiment.published or "No numbers are printed for this item."
    facts = {"the paper": printed, "time": f"{entry.seconds:.1f} s"}
    facts |= {key: str(value) for key, value in experiment.parameters(full).items()}
    listed = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items())
    findings = "".join(f"<li>{escape(line)}</li>" for line in entry.outcome.findings)
    tables = "".join(
        _table(f"{experiment.name}.{key}.csv", table) for key, table in entry.outcome.tables.items()
    )
    return (
        f'{head}<a href="{name}.pdf"><img src="{name}.png" alt="{escape(experiment.item)}"></a>'
        f"<ul>{findings}</ul><dl>{listed}</dl>{tables}"
        f'<p><a href="{name}.json">everything as JSON</a></p>'
    )


def _table(file: str, table: Table) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_show(cell))}</td>" for cell in row) + "</tr>"
        for row in table.rows
    )
    return (
        f'<p>{escape(table.caption)} (<a href="{escape(file)}">CSV</a>)</p>'
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _show(cell: Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:.6g}"
    return str(cell)
