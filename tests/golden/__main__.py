"""Compute the golden values: ``python -m tests.golden [PATTERN ...] [--write]``."""

from __future__ import annotations

import json
import sys
from fnmatch import fnmatch
from time import process_time
from typing import Any

import click

from tests.golden.compare import VALUES, differences, moved, numbers_of, read, write
from tests.golden.settings import CASES

# By less than this, numbers that are computed again are the same.
SAME = 1e-14


@click.command()
@click.argument("patterns", nargs=-1)
@click.option("--write", "record", is_flag=True, help="Keep what was computed.")
def main(patterns: tuple[str, ...], record: bool) -> None:
    """Compute all cases, or those that a PATTERN such as 'kernel/*' names, and say what moved.

    Exit code 1 if one moved by more than it may ("!"), and is not kept.
    """
    kept: dict[str, Any] = read(VALUES) if VALUES.exists() else {}
    chosen = [n for n in CASES if not patterns or any(fnmatch(n, p) for p in patterns)]
    seconds, too_far = 0.0, 0
    for name in chosen:
        start = process_time()
        found = json.loads(json.dumps(numbers_of(CASES[name])))
        took = process_time() - start
        seconds += took
        if name not in kept:
            click.echo(f"+ {name}: {found}")
        else:
            wrong = list(moved(kept[name], found, CASES[name].tolerance))
            a_little = [] if wrong else differences(kept[name], found, SAME)
            for text in (*wrong, *a_little):
                click.echo(f"{'!' if wrong else ' '} {name}: {text}")
            too_far += bool(wrong)
        if took > 1.5 and not CASES[name].slow:
            click.echo(f"  {name}: {took:.1f} s, and not marked as slow")
        kept[name] = found
    gone = sorted(kept.keys() - CASES.keys())
    click.echo("".join(f"- {name}\n" for name in gone), nl=False)
    click.echo(f"{len(chosen)} cases in {seconds:.0f} s of processor, {too_far} moved too far")
    if record:
        write(VALUES, {name: kept[name] for name in kept if name in CASES})
    sys.exit(1 if too_far and not record else 0)


if __name__ == "__main__":
    main()
