"""The index page: every figure with its table, the paper beside it, parameters and time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from dpopt.files import write_text
from dpopt.provenance import versions
from experiments.registry import VERDICTS, Comparison, Experiment, Outcome
from experiments.report_tables import table_html

_STYLE = Path(__file__).with_suffix(".css")
# More of them start folded.
_OPEN_FINDINGS = 12

_PARTING = {
    "refuted": "Refuted: a published statement that is false",
    "differs": "Another number, or another order",
    "sharper": "The statement holds, and more does",
}


@dataclass(frozen=True)
class Entry:
    """One experiment in the report: its outcome and time, or why it failed."""

    experiment: Experiment
    outcome: Outcome | None
    seconds: float
    failure: str | None = None

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """What the paper says beside what was found; none if it failed."""
        return () if self.outcome is None else self.outcome.comparisons


def write_report(entries: Sequence[Entry], folder: Path, *, full: bool) -> Path:
    """Write ``report.html`` beside the files of the run; return its path.

    The page holds its own style and no script; it asks for nothing but the figures beside it.
    """
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
        f"<title>dpopt experiments</title><style>{_STYLE.read_text(encoding='utf-8')}</style>"
        '</head><body><h1 id="top">dpopt: '
        f"{'full' if full else 'quick'} run</h1>"
        f"<p>{len(entries)} experiments in {sum(e.seconds for e in entries):.1f} s; "
        f"{escape(libraries)}.</p>{_index(papers)}{_disagreements(entries)}{sections}"
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
    said = '<span class="failed">failed</span>' if entry.failure else _tally(entry.comparisons)
    return (
        f'<li><a href="#{escape(experiment.name)}">{escape(experiment.item)}</a> '
        f'<span class="soft">{entry.seconds:.1f} s</span> {said}</li>'
    )


def _tally(comparisons: Iterable[Comparison]) -> str:
    """Return how many comparisons have each verdict, such as "3 agree, 1 refuted"."""
    counts = Counter(comparison.verdict for comparison in comparisons)
    words = {"agrees": "agree", "differs": "differ"}
    return ", ".join(
        f'<span class="{verdict}">{counts[verdict]}&nbsp;{words.get(verdict, verdict)}</span>'
        for verdict in VERDICTS
        if counts[verdict]
    )


def _disagreements(entries: Sequence[Entry]) -> str:
    """Return every comparison in which paper and run part, most serious first."""
    whole = [comparison for entry in entries for comparison in entry.comparisons]
    parts = []
    for verdict, heading in _PARTING.items():
        rows = "".join(
            _row(
                comparison,
                f'<td class="item" data-label="item"><a href="#{escape(entry.experiment.name)}">'
                f"{escape(entry.experiment.paper)}, {escape(entry.experiment.item)}</a></td>",
                "",
            )
            for entry in entries
            for comparison in entry.comparisons
            if comparison.verdict == verdict
        )
        if rows:
            head = '<th class="item">item</th>'
            parts.append(f"<h4>{heading}</h4>{_comparison_table(rows, head, '')}")
    if not parts:
        return ""
    return (
        '<h2 id="disagreements">Where the papers and this run part</h2>'
        f"<p>{len(whole)} printed numbers and statements were compared: {_tally(whole)}.</p>"
        + "".join(parts)
    )


def _comparison_table(
    rows: str, item: str = "", verdict: str = '<th class="verdict">verdict</th>'
) -> str:
    return (
        f'<table class="compare"><thead><tr>{item}<th>the paper</th><th>this run</th>{verdict}'
        '<th class="certificate">certificate</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _row(comparison: Comparison, item: str, verdict: str) -> str:
    """Return a row; the cells ``item`` and ``verdict`` are empty where the table has neither."""
    return (
        f'<tr>{item}<td data-label="the paper">{escape(comparison.claim)}</td>'
        f'<td data-label="this run">{escape(comparison.ours)}</td>{verdict}'
        f'<td class="certificate" data-label="certificate">{escape(comparison.certificate)}</td>'
        "</tr>"
    )


def _compared(comparisons: Sequence[Comparison]) -> str:
    """Return what the paper says of one item beside what was found; nothing if it says nothing."""
    rows = "".join(
        _row(
            comparison,
            "",
            f'<td class="verdict {comparison.verdict}" data-label="verdict">'
            f"{comparison.verdict}</td>",
        )
        for comparison in comparisons
    )
    return _comparison_table(rows) if rows else ""


def _section(entry: Entry, full: bool) -> str:
    experiment, name = entry.experiment, escape(entry.experiment.name)
    head = f'<h3 id="{name}">{escape(experiment.item)}</h3><p>{escape(experiment.summary)}</p>'
    if entry.outcome is None:
        return f'{head}<p class="failed">{escape(entry.failure or "failed")}</p>'
    printed = escape((experiment.published or "no numbers are printed for this item").rstrip("."))
    tables = "".join(
        table_html(f"{experiment.name}.{key}.csv", table)
        for key, table in entry.outcome.tables.items()
    )
    alt = f"{escape(experiment.paper)}, {escape(experiment.item)}"
    return (
        f'{head}<a class="figure" href="{name}.pdf"><img src="{name}.png" alt="{alt}"></a>'
        f"<p>The paper: {printed}. Time: {entry.seconds:.1f} s.</p>"
        f"{_compared(entry.comparisons)}{_findings(entry.outcome.findings)}"
        f"{tables}{_parameters(experiment, full)}"
        f'<p><a href="{name}.json">everything as JSON</a> · '
        '<a href="#top">to the top</a></p>'
    )


def _findings(findings: Sequence[str]) -> str:
    listed = f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in findings)}</ul>"
    if len(findings) <= _OPEN_FINDINGS:
        return listed
    return f"<details><summary>{len(findings)} findings</summary>{listed}</details>"


def _parameters(experiment: Experiment, full: bool) -> str:
    listed = "".join(
        f"<dt>{escape(key)}</dt><dd>{escape(str(value))}</dd>"
        for key, value in experiment.parameters(full).items()
    )
    return f"<details><summary>parameters</summary><dl>{listed}</dl></details>"
