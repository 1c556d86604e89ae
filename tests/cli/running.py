"""``dpopt`` in this process, and what it printed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dpopt.cli import main

Capture = pytest.CaptureFixture[str]


def run(arguments: Sequence[str], capfd: Capture) -> tuple[int, str, str]:
    """Return the exit code of a command, what it printed, and what it said on standard error."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    printed = capfd.readouterr()
    return int(caught.value.code or 0), printed.out, printed.err
