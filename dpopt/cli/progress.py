"""What the command line tells while it computes: bars on a terminal, warnings of long work."""

from __future__ import annotations

from contextlib import AbstractContextManager

from dpopt._progress import ProgressCallback, terminal_bars


def told() -> AbstractContextManager[ProgressCallback]:
    """Tell the progress of everything inside the block on standard error."""
    return terminal_bars()
