"""What the templates show of an entry: texts, classes and places, without any markup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experiments.kept import Entry
from experiments.parameters import documented, text_of
from experiments.registry import NOT_COMPARABLE, VERDICTS, Cell, Comparison, Table

# Longer tables start folded; of the longest, a page shows the first rows, the CSV all.
OPEN_ROWS, SHOWN_ROWS = 40, 300
_LONG_WORDS = 40

PARTING = {
    "refuted": "Refuted: a published statement that is false",
    "misprint": "Misprint: false as printed, not as meant",
    "differs": "Another number, or another order",
    "sharper": "The statement holds, and more does",
}
MEANING = {
    "agrees": "The printed number or statement is what was found.",
    "differs": "Another number, or another order, was found.",
    "refuted": "The statement is false; the certificate shows a case.",
    "misprint": "A strict < that holds with <=, or a sign that the paper prints right elsewhere.",
    "sharper": "The statement holds, and more does.",
    NOT_COMPARABLE: "Data or parameters are not the paper's, or the statement is about a limit.",
}
# A statement that several items judge has the first of these that one of them gives it.
_SERIOUS = (*PARTING, "agrees", NOT_COMPARABLE)
_KINDS = ("quick", "full", "with own parameters")
_PLURAL = {"agrees": "agree", "differs": "differ"}


@dataclass(frozen=True)
class Judged:
    """One item's comparison, and its place among those of the item, from 1 on."""

    entry: Entry
    comparison: Comparison
    place: int


def by_paper(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Return the entries of each paper, in the order of the first of each."""
    papers: dict[str, list[Entry]] = {}
    for entry in entries:
        papers.setdefault(entry.experiment.paper, []).append(entry)
    return papers


def statements(entries: Iterable[Entry]) -> list[list[Judged]]:
    """Return each statement as the items that judge it, the most serious verdict first."""
    found: dict[tuple[str, str], list[Judged]] = {}
    for entry in entries:
        for place, comparison in enumerate(entry.comparisons, 1):
            key = (entry.experiment.paper, comparison.identifier)
            found.setdefault(key, []).append(Judged(entry, comparison, place))
    for judged in found.values():
        judged.sort(key=lambda one: _SERIOUS.index(one.comparison.verdict))
    return list(found.values())


def items(judged: Iterable[Judged]) -> list[Judged]:
    """Return the first judgement of each item, in the order in which they come."""
    first: dict[str, Judged] = {}
    for one in judged:
        first.setdefault(one.entry.experiment.name, one)
    return list(first.values())


def parted(found: Sequence[Sequence[Judged]]) -> dict[str, list[Sequence[Judged]]]:
    """Return the statements by the verdict with which paper and run part, most serious first."""
    groups = {
        verdict: [judged for judged in found if judged[0].comparison.verdict == verdict]
        for verdict in PARTING
    }
    return {verdict: group for verdict, group in groups.items() if group}


def tally(verdicts: Iterable[str]) -> list[tuple[str, str]]:
    """Return verdicts that occur, each with how many there are, such as "3 agree"."""
    counts = Counter(verdicts)
    return [
        (verdict, f"{counts[verdict]}\N{NO-BREAK SPACE}{_PLURAL.get(verdict, verdict)}")
        for verdict in VERDICTS
        if counts[verdict]
    ]


def time(entry: Entry) -> str:
    """Return how long a run took."""
    return "time unknown" if entry.seconds is None else f"{entry.seconds:.1f} s"


def kind(entry: Entry) -> str:
    """Return which parameters the run had."""
    if entry.own_parameters:
        return "with own parameters"
    return "full" if entry.full else "quick"


def summary(entry: Entry) -> str:
    """Return what there is to see; its numbers are the experiment's own, which a run may change."""
    said = entry.experiment.summary
    return f"With the paper's parameters: {said}" if entry.changed else said


def is_known(entry: Entry) -> bool:
    """Return whether the folder tells with which parameters and when it was run."""
    return entry.outcome is not None or entry.when is not None


def state(entry: Entry) -> str:
    """Return why there is no outcome, in a word or two."""
    return "failed" if entry.when is not None else "cannot be read"


def counted(entries: Sequence[Entry]) -> str:
    """Return how many items of which kind of run there are."""
    kinds = Counter(map(kind, entries))
    listed = ", ".join(f"{kinds[name]} {name}" for name in _KINDS if kinds[name])
    seconds = sum(entry.seconds or 0.0 for entry in entries)
    count = f"{len(entries)} item{'s' if len(entries) != 1 else ''}"
    return f"{count} ({listed or 'none'}), computed in {seconds:.1f} s."


def last(entries: Sequence[Entry]) -> str:
    """Return when the last run ended, and the versions that made the entries."""
    when = max((entry.when for entry in entries if entry.when), default="at an unknown time")
    return f"The last run ended {when}. Made by {libraries(entries)}."


def anchor(paper: str) -> str:
    """Return the identifier of a paper's part of the index."""
    return "paper-" + "".join(c if c.isalnum() else "-" for c in paper.lower())


def column_classes(table: Table) -> list[dict[str, str]]:
    """Return the class of each column: numbers, words, or sentences, which may break."""
    return [_column_class(values) for values in map(table.column, table.columns)]


def _column_class(values: Sequence[Cell]) -> dict[str, str]:
    words = [len(value) for value in values if isinstance(value, str)]
    if not words:
        return {}
    return {"class": "long" if max(words) > _LONG_WORDS else "words"}


def cell(value: Cell) -> str:
    """Return a cell as a reader sees it: six digits, which the CSV has more of."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def parameters(entry: Entry) -> list[tuple[str, str, str, str]]:
    """Return name and value of each parameter of a run, the experiment's own, and what it is."""
    about, own = documented(type(entry.experiment.config)), entry.experiment.parameters(entry.full)
    return [
        (name, text_of(value, " "), text_of(own.get(name), " "), about.get(name, ""))
        for name, value in entry.configuration.items()
    ]


def libraries(entries: Iterable[Entry]) -> str:
    """Return the versions that made the entries, or how many sets of versions there are."""
    made = {", ".join(f"{name} {v}" for name, v in entry.versions.items()) for entry in entries}
    if len(made) == 1:
        return made.pop()
    return f"{len(made)} sets of versions, see the items"


def sought(entries: Iterable[Entry]) -> list[dict[str, str]]:
    """Return what the search of the index finds: items and statements, with links."""
    found = []
    for entry in entries:
        about, page = {"item": entry.experiment.title}, f"{entry.experiment.name}.html"
        text = f"{summary(entry)} ({entry.experiment.name})"
        found.append(about | {"kind": "item", "text": text, "page": page, "verdict": ""})
        for place, said in enumerate(entry.comparisons, 1):
            text = f"The paper: {said.claim} This run: {said.ours}"
            at = f"{page}#statement-{place}"
            statement = {"kind": "statement", "text": text, "page": at, "verdict": said.verdict}
            found.append(about | statement)
    return found
