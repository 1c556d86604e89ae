"""The index page: every figure with its table, the paper beside it, parameters and time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from dpopt.files import write_text
from experiments.catalogue import all_experiments
from experiments.kept import Entry, kept_entry
from experiments.registry import NOT_COMPARABLE, VERDICTS, Cell, Comparison, Table

# Longer tables start folded; of the longest, the page shows the first rows, the CSV all.
_OPEN_ROWS, _SHOWN_ROWS = 40, 300
_LONG_WORDS = 40

_STYLE = Path(__file__).with_suffix(".css")
# More of them start folded.
_OPEN_FINDINGS = 12

_PARTING = {
    "refuted": "Refuted: a published statement that is false",
    "differs": "Another number, or another order",
    "sharper": "The statement holds, and more does",
}
# A statement that several items judge has the first of these that one of them gives it.
_SERIOUS = (*_PARTING, "agrees", NOT_COMPARABLE)

Judged = tuple[Entry, Comparison]


def write_report(entries: Sequence[Entry], folder: Path) -> Path:
    """Write ``index.html`` of the entries of a run and of all else that the folder keeps.

    The page holds its own style and no script; it asks for nothing but the figures beside it.

    Args:
        entries: of the run, whose files are in the folder, with what `keep_run` writes.
        folder: may hold earlier runs of other experiments; they stay in the report.

    Returns:
        The page.
    """
    shown = _merged(entries, folder)
    papers = _by_paper(shown)
    sections = "".join(
        f'<h2 id="{_anchor(paper)}">{escape(paper)}</h2>'
        + "".join(_section(entry) for entry in group)
        for paper, group in papers.items()
    )
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>dpopt experiments</title><style>{_STYLE.read_text(encoding='utf-8')}</style>"
        f'</head><body><h1 id="top">dpopt: experiments</h1><p>{_said_of(shown)}</p>'
        f"{_index(papers)}{_disagreements(shown)}{sections}"
        "</body></html>\n"
    )
    path = folder / "index.html"
    write_text(path, page)
    return path


def _merged(entries: Sequence[Entry], folder: Path) -> list[Entry]:
    """Return the entries of this run and those that the folder keeps, in the registry's order."""
    by_name = {entry.experiment.name: entry for entry in entries}
    known = all_experiments()
    found = [by_name.get(name) or kept_entry(known[name], folder) for name in known]
    others = [entry for name, entry in by_name.items() if name not in known]
    return [entry for entry in found if entry is not None] + others


def _said_of(entries: Sequence[Entry]) -> str:
    """Return how many items of which kind of run there are, and the libraries that made them."""
    full = sum(entry.full for entry in entries)
    seconds = sum(entry.seconds or 0.0 for entry in entries)
    last = max((entry.when for entry in entries if entry.when), default="at an unknown time")
    made = {", ".join(f"{name} {v}" for name, v in entry.versions.items()) for entry in entries}
    libraries = made.pop() if len(made) == 1 else f"{len(made)} sets of versions, see the items"
    return (
        f"{len(entries)} items, {len(entries) - full} of quick runs and {full} of full ones, "
        f"{seconds:.1f} s; the last run ended {escape(last)}; {escape(libraries)}."
    )


def _time(entry: Entry) -> str:
    return "time unknown" if entry.seconds is None else f"{entry.seconds:.1f} s"


def _ran(entry: Entry) -> str:
    """Return the kind of run, when it ended, and what made it."""
    kind, version = "full" if entry.full else "quick", entry.versions.get("dpopt", "unknown")
    kind += ", own parameters" if entry.own_parameters else ""
    return f"{kind}, {entry.when or 'interrupted, time unknown'}, dpopt {version}"


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
        f'<span class="soft">{_time(entry)}</span> {said}</li>'
    )


def _tally(comparisons: Iterable[Comparison]) -> str:
    """Return how many comparisons have each verdict, such as "3 agree, 1 refuted"."""
    counts = Counter(comparison.verdict for comparison in comparisons)
    words = {"agrees": "agree", "differs": "differ"}
    return ", ".join(
        f'<span class="{_class(verdict)}">{counts[verdict]}&nbsp;'
        f"{words.get(verdict, verdict)}</span>"
        for verdict in VERDICTS
        if counts[verdict]
    )


def _class(verdict: str) -> str:
    return verdict.replace(" ", "-")


def _statements(entries: Sequence[Entry]) -> dict[tuple[str, str], list[Judged]]:
    """Return each statement with the items that judge it, the most serious verdict first."""
    found: dict[tuple[str, str], list[Judged]] = {}
    for entry in entries:
        for comparison in entry.comparisons:
            key = (entry.experiment.paper, comparison.identifier)
            found.setdefault(key, []).append((entry, comparison))
    for judged in found.values():
        judged.sort(key=lambda pair: _SERIOUS.index(pair[1].verdict))
    return found


def _disagreements(entries: Sequence[Entry]) -> str:
    """Return every statement in which paper and run part, most serious first, each once."""
    statements = list(_statements(entries).values())
    parts = []
    for verdict, heading in _PARTING.items():
        chosen = [judged for judged in statements if judged[0][1].verdict == verdict]
        rows = "".join(_row(judged[0][1], _items(judged), "") for judged in chosen)
        if rows:
            head = '<th class="item">item</th>'
            parts.append(f"<h4>{heading}</h4>{_comparison_table(rows, head, '')}")
    if not parts:
        return ""
    return (
        '<h2 id="disagreements">Where the papers and this run part</h2>'
        f"<p>{len(statements)} printed numbers and statements were compared, each counted once "
        f"however many items judge it: {_tally(judged[0][1] for judged in statements)}.</p>"
        + "".join(parts)
    )


def _items(judged: Sequence[Judged]) -> str:
    """Return a cell that names the items that judge a statement."""
    links = "; ".join(
        f'<a href="#{escape(entry.experiment.name)}">{escape(entry.experiment.item)}</a>'
        for entry in {entry.experiment.name: entry for entry, _ in judged}.values()
    )
    paper = escape(judged[0][0].experiment.paper)
    return f'<td class="item" data-label="item">{paper}: {links}</td>'


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
        f'<td class="certificate" data-label="certificate">{escape(comparison.certificate)}'
        f"{_rule(comparison)}</td></tr>"
    )


def _rule(comparison: Comparison) -> str:
    """Return how the verdict follows, as a line of its own."""
    return f"<br>Rule: {escape(comparison.rule)}." if comparison.rule else ""


def _compared(comparisons: Sequence[Comparison]) -> str:
    """Return what the paper says of one item beside what was found; nothing if it says nothing."""
    rows = "".join(
        _row(
            comparison,
            "",
            f'<td class="verdict {_class(comparison.verdict)}" data-label="verdict">'
            f"{comparison.verdict}</td>",
        )
        for comparison in comparisons
    )
    return _comparison_table(rows) if rows else ""


def table_html(file: str, table: Table) -> str:
    """Return a table that folds and scrolls, with a link to its CSV.

    Args:
        file: name of the CSV beside the page.
        table: of the run.
    """
    style = [_style(table.column(name)) for name in table.columns]
    # A long name may break, so that its column is as narrow as its numbers allow.
    names = [escape(name).replace("_", "_<wbr>") for name in table.columns]
    head = "".join(f"<th{kind}>{name}</th>" for kind, name in zip(style, names, strict=True))
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{kind}>{escape(_show(cell))}</td>" for kind, cell in zip(style, row, strict=True)
        )
        + "</tr>"
        for row in table.rows[:_SHOWN_ROWS]
    )
    count, shown = len(table.rows), " open" if len(table.rows) <= _OPEN_ROWS else ""
    rows = f"{count} rows" + (f", the first {_SHOWN_ROWS} here" if count > _SHOWN_ROWS else "")
    return (
        f"<details{shown}><summary>{escape(table.caption)} ({rows})</summary>"
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f'<tbody>{body}</tbody></table></div><p><a href="{escape(file)}">CSV</a></p></details>'
    )


def _style(cells: Sequence[Cell]) -> str:
    """Return the class of a column: numbers, words, or sentences, which may break."""
    words = [len(cell) for cell in cells if isinstance(cell, str)]
    if not words:
        return ""
    return ' class="long"' if max(words) > _LONG_WORDS else ' class="words"'


def _show(cell: Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:.6g}"
    return str(cell)


def _section(entry: Entry) -> str:
    experiment, name = entry.experiment, escape(entry.experiment.name)
    head = f'<h3 id="{name}">{escape(experiment.item)}</h3><p>{escape(experiment.summary)}</p>'
    if entry.outcome is None:
        said = f"{escape(entry.failure or 'failed')} ({escape(_ran(entry))})"
        return f'{head}<p class="failed">{said}</p>'
    printed = escape((experiment.published or "no numbers are printed for this item").rstrip("."))
    tables = "".join(
        table_html(f"{experiment.name}.{key}.csv", table)
        for key, table in entry.outcome.tables.items()
    )
    alt = f"{escape(experiment.paper)}, {escape(experiment.item)}"
    return (
        f'{head}<a class="figure" href="{name}.pdf"><img src="{name}.png" alt="{alt}"></a>'
        f"<p>The paper: {printed}. Time: {_time(entry)}. Run: {escape(_ran(entry))}.</p>"
        f"{_compared(entry.comparisons)}{_findings(entry.outcome.findings)}"
        f"{tables}{_parameters(entry)}"
        f'<p><a href="{name}.json">everything as JSON</a> · '
        '<a href="#top">to the top</a></p>'
    )


def _findings(findings: Sequence[str]) -> str:
    listed = f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in findings)}</ul>"
    if len(findings) <= _OPEN_FINDINGS:
        return listed
    return f"<details><summary>{len(findings)} findings</summary>{listed}</details>"


def _parameters(entry: Entry) -> str:
    return _listed("parameters", entry.configuration) + _listed("versions", entry.versions)


def _listed(name: str, values: Mapping[str, object]) -> str:
    listed = "".join(
        f"<dt>{escape(key)}</dt><dd>{escape(str(value))}</dd>" for key, value in values.items()
    )
    return f"<details><summary>{name}</summary><dl>{listed}</dl></details>"
