"""What the command line tells while it computes: bars on a terminal, and what will take long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from dpopt._progress import ProgressEvent, reporting, terminal_bars


@contextmanager
def told() -> Iterator[None]:
    """Tell on standard error, inside the block, the first task of more than a minute, and bars."""
    with terminal_bars() as bars:
        long: list[str] = []

        def tell(event: ProgressEvent) -> None:
            if event.seconds is None:
                bars(event)
            elif not long:
                long.append(event.message)
                click.echo(event.message, err=True)

        with reporting(tell):
            yield
