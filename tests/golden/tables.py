"""What is kept of the experiments: ``python -m tests.golden.tables [FOLDER] [--write]``.

FOLDER, by default results, is where ``python -m experiments`` wrote all items at their defaults. Of
each column of each table some sums are kept, of each item its verdicts. No table
of these items holds a time; benchmarks do, which run only when they are named.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from experiments.catalogue import all_experiments
from experiments.kept import kept_entry
from experiments.registry import Outcome
from tests.golden.compare import differences, is_float, read, write

TABLES = Path(__file__).with_name("tables.json")
# Columns that are 0 but for rounding: gaps, residuals, differences of what should be the same.
TINY, ROUNDED = 1e-8, {"gamma_difference"}
TOLERANCE = 1e-9
MOST_TEXTS = 8
# What a search finds depends on how a processor rounds.
SEARCHED = {"noise-releases": 1e-2}


def digest(outcome: Outcome, item: str) -> dict[str, Any]:
    """Return what is kept of an item, by item, table and column."""
    kept: dict[str, Any] = {}
    if outcome.comparisons:
        verdicts = [[c.identifier, c.verdict] for c in outcome.comparisons]
        kept[f"{item} | verdicts"] = sorted(verdicts)
    for name, table in outcome.tables.items():
        kept[f"{item} | {name}"] = {"rows": len(table.rows), "columns": list(table.columns)}
        for place, column in enumerate(table.columns):
            cells = [row[place] for row in table.rows]
            kept[f"{item} | {name} | {column}"] = summed(cells, column in ROUNDED)
    return kept


def summed(cells: list[Any], rounded: bool = False) -> Any:
    """Return a column in short, so that a number that moved or changed its place shows."""
    finite = [float(x) for x in cells if is_float(x) and math.isfinite(x)]
    others = [str(x) for x in cells if not (is_float(x) and math.isfinite(x))]
    found: dict[str, Any] = {"others": texts(others)} if others else {}
    size = max(map(abs, finite), default=0.0)
    if not finite:
        return found
    if 0.0 < size <= TINY or rounded:
        return {**found, "tiny": len(finite)}
    # Weights that tell places apart, of the size of the numbers' sum.
    weighted = math.fsum(x * (2 * i + 1) / len(finite) for i, x in enumerate(finite))
    sums = [math.fsum(finite), weighted, min(finite), max(finite), finite[0], finite[-1]]
    # 12 digits of the largest number.
    digits = 12 - math.ceil(math.log10(size or 1.0))
    return {**found, "sums": [round(x, digits) for x in sums]}


def texts(cells: list[str]) -> Any:
    """Return how often each text stands in a column; of many only a hash, and of their order."""
    order = hashlib.sha256("\n".join(cells).encode()).hexdigest()[:12]
    several = {text: cells.count(text) for text in sorted(set(cells))}
    return [several if len(several) <= MOST_TEXTS else len(several), order]


def changes(kept: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    """Yield what moved."""
    for name in sorted({*kept, *found}):
        tolerance = SEARCHED.get(name.partition(" | ")[0], TOLERANCE)
        before, now = ({name: each[name]} if name in each else {} for each in (kept, found))
        yield from differences(before, now, tolerance)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path("results"))
@click.option("--write", "record", is_flag=True, help="Keep the numbers of this folder.")
def main(folder: Path, record: bool) -> None:
    """Compare what FOLDER holds of the experiments with what is kept; exit code 1 if it moved."""
    found: dict[str, Any] = {}
    for name, experiment in all_experiments().items():
        if experiment.repeatable:
            entry = kept_entry(experiment, folder)
            if entry is None or entry.outcome is None or entry.own_parameters or entry.full:
                raise click.ClickException(f"{folder} holds no run of {name} at its defaults.")
            found |= digest(entry.outcome, name)
    found = json.loads(json.dumps(found))
    told = list(changes(read(TABLES) if TABLES.exists() else {}, found))
    click.echo("\n".join([*told, f"{len(found)} entries, {len(told)} moved"]))
    if record:
        write(TABLES, found)
    sys.exit(1 if told and not record else 0)


if __name__ == "__main__":
    main()
